package dozekafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

// An Option is one of this package's options of Run, RunImage and Start.
type Option func(*options) error

// Customize does nothing: Run looks at options of its own before.
func (Option) Customize(*testcontainers.GenericContainerRequest) error { return nil }

var _ testcontainers.ContainerCustomizer = Option(nil)

// options are all of them.
type options struct {
	env        map[string]string
	topics     []string
	volume     string
	stablePort bool
	fromSource bool
	inProcess  bool
	log        *testLog
}

// collect gathers this package's options out of all.
func collect(opts []testcontainers.ContainerCustomizer) (*options, error) {
	o := &options{env: map[string]string{}}
	for _, opt := range opts {
		if own, ok := opt.(Option); ok {
			if err := own(o); err != nil {
				return nil, err
			}
		}
	}
	if len(o.topics) > 0 {
		o.env[config.Prefix+"TOPICS"] = strings.Join(o.topics, ",")
	}
	return o, check(o.env)
}

// check has the broker's own configuration look at the variables that are
// settings of its own, before a container is started for nothing.
func check(env map[string]string) error {
	own := maps.Clone(env)
	maps.DeleteFunc(own, func(name, _ string) bool { return !strings.HasPrefix(name, config.Prefix) })
	s, _, err := config.Parse(nil, environ(own))
	if err != nil {
		return err
	}
	return errors.Join(errorsOf(s.Warnings)...) // an unknown setting is only warned of by a broker
}

func errorsOf(lines []string) (all []error) {
	for _, l := range lines {
		all = append(all, errors.New(l))
	}
	return all
}

func environ(env map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}

// WithSetting sets any of the broker's settings (README.md lists them) by its
// flag's or its variable's name: "fsync-interval", "FSYNC_INTERVAL" and
// "DOZE_KAFKA_FSYNC_INTERVAL" are one. A setting that there is not, or a value
// that can't be, is an error of Run. Addresses, the data directory and HTTP are Run's own business.
func WithSetting(name, value string) Option {
	return func(o *options) error {
		key := strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_")), config.Prefix)
		if variable := config.Prefix + key; slices.Contains(owned, variable) {
			return ownedError(variable)
		}
		if key == "TOPICS" {
			o.topics = append(o.topics, value)
			return nil
		}
		o.env[config.Prefix+key] = value
		return nil
	}
}

// WithTopics makes topics before the broker is ready, each as
// name[:partitions[:config=value[;config=value]]], such as "orders:3" or
// "audit:1:cleanup.policy=compact". It may be given several times. A topic that
// is there already (WithPersistentVolume) grows to the partitions given, and never shrinks.
func WithTopics(topics ...string) Option {
	return func(o *options) error {
		o.topics = append(o.topics, topics...)
		return nil
	}
}

// WithAutoCreateTopics says whether a topic is made when a client first asks
// for it. Without the option it is, as in Kafka; false finds misspelt names.
func WithAutoCreateTopics(enabled bool) Option {
	return WithSetting("AUTO_CREATE_TOPICS", fmt.Sprint(enabled))
}

// WithLogLevel is the least level that the broker logs: debug, info, warn or error.
func WithLogLevel(level string) Option { return WithSetting("LOG_LEVEL", level) }

// A Durability is what acknowledged records outlive.
type Durability int

const (
	// PowerLoss is the default: acks=all is on the disk (fsync) before it is answered.
	PowerLoss Durability = iota
	// ProcessCrash is cheaper: as Apache Kafka's default, acks=all is answered from the
	// page cache. Records outlive Kill and Restart, and a power cut may take the last ones.
	ProcessCrash
)

// WithDurability says what acknowledged records outlive.
func WithDurability(d Durability) Option {
	if d != PowerLoss && d != ProcessCrash {
		return func(*options) error { return fmt.Errorf("WithDurability: %d is neither PowerLoss nor ProcessCrash", d) }
	}
	return WithSetting("ACKS_ALL_SYNC", fmt.Sprint(d == PowerLoss))
}

// WithPersistentVolume keeps the data in a named volume, which neither
// Terminate nor testcontainers' reaper removes: the next run with the same name finds
// topics, records and offsets. Two brokers at once on one volume are refused.
//
// The volume is bound by its name. One of testcontainers.WithMounts carries the labels of
// the session and is removed with it.
func WithPersistentVolume(name string) Option {
	return func(o *options) error {
		if name == "" || strings.ContainsAny(name, "/:\\") {
			return fmt.Errorf("WithPersistentVolume: %q is not the name of a volume", name)
		}
		o.volume = name
		return nil
	}
}

// WithStablePort keeps the host port of Kafka over Kill, Stop, Start and
// Restart, so that clients find the broker again by themselves. Without it Docker gives a new port at every start.
func WithStablePort() Option {
	return func(o *options) error {
		o.stablePort = true
		return nil
	}
}

// WithTestLog gives the broker's log to a test's, line by line, until the test is over.
func WithTestLog(tb testing.TB) Option {
	return func(o *options) error {
		o.log = newTestLog(tb)
		return nil
	}
}

// WithBuildFromSource builds the broker with the local Go toolchain, out of
// the module graph of the module whose test this is (so at the version in its
// go.mod, or the checkout of its replace), and packs it into an image from
// scratch. No registry is asked for anything. The image's tag is the hash of its content, so it is made once.
//
// Run does so by itself where the image of its version is neither present nor
// can be pulled, and where the version is none that was released.
func WithBuildFromSource() Option {
	return func(o *options) error {
		o.fromSource = true
		return nil
	}
}

// WithInProcess makes Start run the broker inside the test's process even if there is a Docker engine.
func WithInProcess() Option {
	return func(o *options) error {
		o.inProcess = true
		return nil
	}
}
