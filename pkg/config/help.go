package config

import (
	"fmt"
	"strings"
)

// Help is the text of --help: every setting with its flag and variable, type,
// default and one line (FX-1).
func Help() string {
	var b strings.Builder
	b.WriteString("A single-node Kafka broker that keeps what it acknowledges.\n\n" +
		"Usage:\n" +
		"  broker [--name value ...]              run\n" +
		"  broker healthcheck [--name value ...]  ask the broker that these settings start; exit 0 or 1\n" +
		"  broker dump [--records] FILE...        print the files of a segment, and what is broken in them\n" +
		"  broker version                         print the version\n\n" +
		"Every setting is a flag and an environment variable. The flag beats the variable\n" +
		"beats KAFKA_... and KAFKA_CFG_... variables (properties of Kafka) beat " + PropertiesFile + "\n" +
		"beats the default. A boolean flag may stand alone. Sizes take KiB, MiB and GiB.\n" +
		CreateTopicsVariable + "=name:partitions:replicas[:policy],... makes topics too.\n\n")
	for _, s := range settings {
		fmt.Fprintf(&b, "  %s, %s\n      %s, default %s: %s\n", s.flag(), s.variable(), s.kind(), s.shownDefault(), s.doc)
		if s.allowed != "" && s.kind() != "boolean" {
			fmt.Fprintf(&b, "      allowed: %s\n", s.allowed)
		}
	}
	return b.String()
}

// Markdown is the settings as the README's table, which stands there between
// the markers <!-- settings --> and <!-- /settings -->.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| variable, flag | type | default | meaning |\n|---|---|---|---|\n")
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, s := range settings {
		fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | `%s` | %s |\n", s.variable(), s.flag(), s.kind(), s.shownDefault(), escape.Replace(s.doc))
	}
	return b.String()
}
