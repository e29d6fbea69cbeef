package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// PropertiesFile is where Apache's image looks for a mounted configuration.
const PropertiesFile = "/mnt/shared/config/server.properties"

// A property is one property of Kafka's as somebody gave it.
type property struct {
	name, value string
	by          string // the variable, or the name and where it stands
}

// parseProperties reads the form of java.util.Properties, of a name that is
// there twice both. The error names the line that can't be read.
func parseProperties(text, where string) ([]property, error) {
	var all []property
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	for len(lines) > 0 {
		line := strings.TrimLeft(lines[0], propertySpace)
		lines = lines[1:]
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) && len(lines) > 0 {
			line = line[:len(line)-1] + strings.TrimLeft(lines[0], propertySpace)
			lines = lines[1:]
		}
		if continues(line) {
			line = line[:len(line)-1]
		}
		end := keyEnd(line)
		name, err1 := unescape(line[:end])
		value, err2 := unescape(cutSeparator(line[end:]))
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", where, line, err)
		}
		all = append(all, property{name, strings.Trim(value, propertySpace), name + " in " + where})
	}
	return all, nil
}

const propertySpace = " \t\f"

// continues says whether the next line belongs to this one: it ends in an odd number of backslashes.
func continues(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// keyEnd is where the name ends: at the first separator that is not escaped.
func keyEnd(line string) int {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			return i
		}
	}
	return len(line)
}

// cutSeparator takes off blanks, at most one = or :, and blanks.
func cutSeparator(s string) string {
	s = strings.TrimLeft(s, propertySpace)
	if s != "" && (s[0] == '=' || s[0] == ':') {
		s = strings.TrimLeft(s[1:], propertySpace)
	}
	return s
}

// unescape reads \t, \n, \r, \f and \uXXXX; any other character behind a backslash stands for itself.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	var units []uint16 // of \uXXXX: two of them may be one character
	flush := func() { b.WriteString(string(utf16.Decode(units))); units = units[:0] }
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			flush()
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'u' {
			if i+5 > len(s) {
				return "", errors.New(`\u needs four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", errors.New(`\u needs four hexadecimal digits`)
			}
			units = append(units, uint16(n))
			i += 4
			continue
		}
		flush()
		if at := strings.IndexByte("tnrf", s[i]); at >= 0 {
			b.WriteByte("\t\n\r\f"[at])
		} else {
			b.WriteByte(s[i])
		}
	}
	flush()
	return b.String(), nil
}
