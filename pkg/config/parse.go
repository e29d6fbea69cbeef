package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// A given value, and the name it was given by: the flag or the variable.
type givenValue struct{ by, value string }

// Sources are the places that settings come from.
type Sources struct {
	Args    []string
	Environ []string // in os.Environ's form
	// Properties is the content of a server.properties of Kafka's, and
	// PropertiesFile its name for people.
	Properties     string
	PropertiesFile string
}

// Parse reads environment and flags alone.
func Parse(args, environ []string) (s *Settings, help string, err error) {
	return Sources{Args: args, Environ: environ}.Parse()
}

// Parse reads all: flag beats our variable beats Kafka's variable beats file
// beats default (FX-1, FX-3). An empty variable counts as not set, since that is what
// compose files make of an unset one. The error joins one line per mistake
// (FX-2). help is the text of --help when it was asked for.
func (src Sources) Parse() (s *Settings, help string, err error) {
	ours, image, warnings := fromEnviron(src.Environ)
	flags, wantHelp, mistakes := fromArgs(src.Args)
	if wantHelp {
		return nil, Help(), nil
	}
	properties, err := parseProperties(src.Properties, src.PropertiesFile)
	if err != nil {
		mistakes = append(mistakes, err)
	}
	kafka := fromKafka(append(properties, kafkaVariables(src.Environ)...))
	values := image
	for _, more := range []map[string]givenValue{kafka.settings, ours, flags} {
		maps.Copy(values, more)
	}
	mistakes = append(mistakes, kafka.mistakes...)

	for _, w := range kafka.warnings {
		warnings = append(warnings, lineBreaks.Replace(w))
	}
	s = &Settings{Warnings: warnings, set: map[string]bool{}, topicDefaults: kafka.topics}
	plain := make(map[string]string, len(values))
	bad := map[string]bool{}
	for _, d := range settings {
		g, ok := values[d.name]
		if !ok {
			continue
		}
		s.set[d.name] = true
		v, err := d.check(g.value)
		if err != nil {
			mistakes = append(mistakes, d.mistake(g, err.Error()))
			bad[d.name] = true
			continue // the default stands in, so that the other settings can be checked
		}
		plain[d.name] = v
	}
	if err := env.ParseWithOptions(s, env.Options{Environment: plain}); err != nil {
		return nil, "", fmt.Errorf("settings: %w", err) // check has read every value before
	}
	for _, p := range s.problems() {
		d := find(p.name)
		if bad[p.name] {
			continue
		}
		g, ok := values[p.name]
		if !ok { // a default is wrong only together with another setting
			g = givenValue{d.variable(), fmt.Sprint(reflect.ValueOf(s).Elem().Field(d.index).Interface())}
		}
		mistakes = append(mistakes, d.mistake(g, p.text))
	}
	if v := variable(src.Environ, CreateTopicsVariable); v != "" {
		if s.createTopics, err = ParseCreateTopics(v); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s=%s: %w", CreateTopicsVariable, v, err))
		}
	}
	if len(mistakes) > 0 {
		for i, m := range mistakes {
			mistakes[i] = errors.New(lineBreaks.Replace(m.Error()))
		}
		return nil, "", errors.Join(mistakes...)
	}
	return s, "", nil
}

// lineBreaks shows those of a value, whose mistake or warning is one line (FX-2).
var lineBreaks = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// variable is the value of a variable in os.Environ's form, of which the last counts; "" if there is none.
func variable(environ []string, name string) (value string) {
	for _, kv := range environ {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			value = v
		}
	}
	return value
}

// find returns the setting of a name that exists.
func find(name string) setting {
	i := slices.IndexFunc(settings, func(d setting) bool { return d.name == name })
	return settings[i]
}

// mistake is the line for a bad value (FX-2).
func (s setting) mistake(g givenValue, text string) error {
	line := fmt.Sprintf("%s=%s: %s", g.by, g.value, text)
	if s.allowed != "" && !strings.Contains(text, s.allowed) {
		line += " (allowed: " + s.allowed + ")"
	}
	return errors.New(line)
}

// check says whether a text is a value of the setting's type, and returns it
// in the form that package env reads.
func (s setting) check(v string) (string, error) {
	switch {
	case s.typ == reflect.TypeFor[time.Duration]():
		d, err := parseDuration(v)
		return d.String(), err
	case s.typ.Kind() == reflect.Bool:
		b, err := parseBool(v)
		return strconv.FormatBool(b), err
	case s.typ.Kind() == reflect.String:
		if v == "" && s.def != "" { // package env would take the default: not what --data-dir "$UNSET" means
			return "", errors.New("must not be empty")
		}
		return v, nil
	}
	if s.unit == "bytes" {
		var err error
		if v, err = plainBytes(v); err != nil {
			return "", err
		}
	}
	bits := 64
	if s.typ.Kind() != reflect.Int64 {
		bits = 32 // Kafka's INT, and what package env gives an int
	}
	if _, err := strconv.ParseInt(v, 10, bits); err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return "", errors.New("too large or too small")
		}
		return "", errors.New("not a whole number")
	}
	return v, nil
}

// parseBool accepts true and false in any case, as Kafka does; 1, yes or on
// are refused rather than guessed.
func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("want true or false")
}

// fromEnviron picks our variables, and apart from them those that the image sets. Those with our prefix that are no setting
// are not refused, since a later version's compose file must start an earlier
// broker, but are warned of.
func fromEnviron(environ []string) (ours, image map[string]givenValue, warnings []string) {
	ours, image = map[string]givenValue{}, map[string]givenValue{}
	for _, kv := range environ {
		variable, v, _ := strings.Cut(kv, "=")
		values := ours
		name, found := strings.CutPrefix(variable, Prefix)
		if !found {
			continue
		}
		if rest, ok := strings.CutPrefix(variable, ImagePrefix); ok {
			name, values = rest, image
		}
		if slices.ContainsFunc(settings, func(d setting) bool { return d.name == name }) {
			if v != "" {
				values[name] = givenValue{variable, v}
			}
			continue
		}
		w := variable + ": no setting of this name, it has no effect"
		if n := nearest(name, setting.baseName); n != "" {
			w += "; did you mean " + Prefix + n + "?"
		}
		warnings = append(warnings, w)
	}
	slices.Sort(warnings)
	return ours, image, warnings
}

// fromArgs reads --name=value, --name value and, for booleans, --name alone.
func fromArgs(args []string) (values map[string]givenValue, help bool, mistakes []error) {
	values = map[string]givenValue{}
	for i := 0; i < len(args); i++ {
		arg, v, hasValue := strings.Cut(args[i], "=")
		if arg == "--help" || arg == "-h" || arg == "-help" {
			return nil, true, nil
		}
		at := slices.IndexFunc(settings, func(d setting) bool { return d.flag() == arg })
		if at < 0 {
			mistakes = append(mistakes, unknownArgument(arg))
			if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++ // its value, not another mistake
			}
			continue
		}
		d := settings[at]
		switch {
		case hasValue:
		case d.typ.Kind() == reflect.Bool:
			v = "true"
			if i+1 < len(args) {
				if _, err := parseBool(args[i+1]); err == nil {
					i++
					v = args[i]
				}
			}
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
			v = args[i]
		default:
			mistakes = append(mistakes, errors.New(arg+": needs a value (allowed: "+d.allowed+")"))
			continue
		}
		values[d.name] = givenValue{arg, v}
	}
	return values, false, mistakes
}

// unknownArgument is the mistake for a flag that there is not.
func unknownArgument(arg string) error {
	if !strings.HasPrefix(arg, "-") {
		return fmt.Errorf("%s: not a flag; every setting is --name value, see --help", arg)
	}
	if n := nearest(arg, setting.flag); n != "" {
		return fmt.Errorf("%s: unknown flag; did you mean %s?", arg, n)
	}
	return fmt.Errorf("%s: unknown flag, see --help", arg)
}

func (s setting) baseName() string { return s.name }

// nearest is the setting's name (as form gives it) that is closest to a
// mistyped one, or "" if none is near.
func nearest(typed string, form func(setting) string) string {
	best, bestDistance := "", max(2, len(typed)/3)+1
	for _, d := range settings {
		if n := distance(strings.ToLower(typed), strings.ToLower(form(d))); n < bestDistance {
			best, bestDistance = form(d), n
		}
	}
	return best
}

// distance is the Levenshtein distance of two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
