package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Type is a ConfigDef type, numbered as DescribeConfigs v3 does.
type Type int8

// The types of Kafka's ConfigDef that some config here has.
const (
	TypeUnknown Type = 0
	TypeBoolean Type = 1
	TypeString  Type = 2
	TypeInt     Type = 3
	TypeShort   Type = 4
	TypeLong    Type = 5
	TypeDouble  Type = 6
	TypeList    Type = 7
)

// String is the name in Kafka's messages.
func (t Type) String() string {
	names := []string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST"}
	if int(t) < len(names) && t >= 0 {
		return names[t]
	}
	return "UNKNOWN"
}

// An InvalidError is INVALID_CONFIG with Kafka's text for the client.
type InvalidError struct{ Message string }

// Error is the text.
func (e *InvalidError) Error() string { return e.Message }

// Unwrap is kerr.InvalidConfig, so that the error has its code.
func (e *InvalidError) Unwrap() error { return kerr.InvalidConfig }

// badValue is a ConfigException: Kafka's text for a value that is not valid.
func badValue(name, value, text string) error {
	return &InvalidError{"Invalid value " + value + " for configuration " + name + ": " + text}
}

// A value is a config's value once parsed; the field of its type counts.
type value struct {
	typ     Type
	number  int64 // INT, SHORT, LONG
	double  float64
	boolean bool
	text    string
	list    []string
}

// parse reads a value as ConfigDef.parseType does, with its texts.
func parse(name, raw string, t Type) (value, error) {
	trimmed := strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' }) // Java's String.trim
	v := value{typ: t}
	switch t {
	case TypeBoolean:
		switch {
		case strings.EqualFold(trimmed, "true"):
			v.boolean = true
		case !strings.EqualFold(trimmed, "false"):
			return v, badValue(name, raw, "Expected value to be either true or false")
		}
	case TypeInt, TypeShort, TypeLong:
		bits := map[Type]int{TypeInt: 32, TypeShort: 16, TypeLong: 64}[t]
		n, err := strconv.ParseInt(strings.Map(asciiDigit, trimmed), 10, bits)
		if err != nil {
			return v, badValue(name, raw, "Not a number of type "+t.String())
		}
		v.number = n
	case TypeDouble:
		f, ok := parseDouble(trimmed)
		if !ok {
			return v, badValue(name, raw, "Not a number of type "+t.String())
		}
		v.double = f
	case TypeList:
		if trimmed != "" {
			for item := range strings.SplitSeq(trimmed, ",") {
				v.list = append(v.list, strings.TrimSpace(item))
			}
		}
	default:
		v.text = trimmed
	}
	return v, nil
}

// asciiDigit turns a digit of another script into ours: Java reads numbers in all of them.
func asciiDigit(r rune) rune {
	if r <= unicode.MaxASCII || !unicode.IsDigit(r) {
		return r
	}
	for _, t := range unicode.Nd.R16 { // Java looks at UTF-16 units, so that no script beyond counts
		if lo, hi := rune(t.Lo), rune(t.Hi); lo <= r && r <= hi {
			return '0' + (r-lo)%10 // a script's ten are in a row
		}
	}
	return r
}

// String is ConfigDef.convertToString: the form in which values are described.
func (v value) String() string {
	switch v.typ {
	case TypeBoolean:
		return strconv.FormatBool(v.boolean)
	case TypeInt, TypeShort, TypeLong:
		return strconv.FormatInt(v.number, 10)
	case TypeDouble:
		return formatDouble(v.double)
	case TypeList:
		return strings.Join(v.list, ",")
	default:
		return v.text
	}
}

// parseDouble reads what Java's Double.parseDouble reads: Go's grammar, but
// for the names of the special values, the suffixes f and d, and underscores.
func parseDouble(s string) (float64, bool) {
	switch strings.TrimLeft(s, "+-") {
	case "NaN":
		return math.NaN(), len(s) <= len("NaN")+1
	case "Infinity":
		if len(s) > len("Infinity")+1 {
			return 0, false
		}
		return math.Inf(map[bool]int{true: -1, false: 1}[s[0] == '-']), true
	}
	if n := len(s); n > 1 && strings.ContainsRune("fFdD", rune(s[n-1])) {
		s = s[:n-1]
	}
	if strings.ContainsAny(s, "_iInN") { // no underscores, inf or nan
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0) // out of range is infinite, no error
}

// formatDouble is Java's Double.toString.
func formatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0]
	}
	if a := math.Abs(f); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(digits, ".") {
		digits += ".0"
	}
	n, _ := strconv.Atoi(exponent) // FormatFloat wrote it
	return digits + "E" + strconv.Itoa(n)
}

// A check is a ConfigDef validator. It may change the value (ValidList drops
// duplicates), and returns Kafka's error.
type check func(name string, v *value) error

// between is ConfigDef.Range; math.MaxInt64 is no upper bound.
func between(low, high int64) check {
	return func(name string, v *value) error {
		below, above := v.number < low, v.number > high
		if v.typ == TypeDouble {
			below, above = v.double < float64(low), high != math.MaxInt64 && v.double > float64(high)
		}
		switch {
		case below:
			return badValue(name, v.String(), "Value must be at least "+strconv.FormatInt(low, 10))
		case above:
			return badValue(name, v.String(), "Value must be no more than "+strconv.FormatInt(high, 10))
		}
		return nil
	}
}

func atLeast(low int64) check { return between(low, math.MaxInt64) }

// gzipLevel is the validator of GzipCompression's levels.
func gzipLevel(name string, v *value) error {
	if v.number == -1 || v.number >= 1 && v.number <= 9 {
		return nil
	}
	return badValue(name, v.String(), "Value must be between 1 and 9 or equal to -1")
}

// stringIn is ConfigDef.ValidString.
func stringIn(values ...string) check {
	return func(name string, v *value) error {
		if slices.Contains(values, v.text) {
			return nil
		}
		return badValue(name, v.text, "String must be one of: "+strings.Join(values, ", "))
	}
}

// listIn is ConfigDef.ValidList with empty lists allowed: duplicates are dropped.
func listIn(values ...string) check {
	return func(name string, v *value) error {
		var kept []string
		for _, item := range v.list {
			if item == "" {
				return &InvalidError{"Configuration '" + name + "' values must not be empty."}
			}
			if !slices.Contains(values, item) {
				return badValue(name, item, "String must be one of: "+strings.Join(values, ", "))
			}
			if !slices.Contains(kept, item) {
				kept = append(kept, item)
			}
		}
		v.list = kept
		return nil
	}
}

// throttledReplicas is ThrottledReplicaListValidator.
func throttledReplicas(name string, v *value) error {
	ok := strings.Join(v.list, "") == "*" || !slices.ContainsFunc(v.list, func(item string) bool {
		partition, broker, found := strings.Cut(item, ":")
		return item != "" && (!found || !isDigits(partition) || !isDigits(broker))
	})
	if ok {
		return nil
	}
	return badValue(name, "["+strings.Join(v.list, ", ")+"]", name+" must be the literal '*' or a list of replicas"+
		" in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...")
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
