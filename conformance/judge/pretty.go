package judge

import (
	"bytes"
	"encoding/json"
	"strings"
)

const lineWidth = 180

// pretty indents JSON, but leaves on one line what fits there: a recording is read by people, and an exchange should fit on a screen.
func pretty(src []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := prettyValue(&out, src, 0); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func prettyValue(out *bytes.Buffer, src []byte, depth int) error {
	if len(src)+depth <= lineWidth || (src[0] != '{' && src[0] != '[') {
		out.Write(src)
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	if _, err := dec.Token(); err != nil { // the opening bracket
		return err
	}
	out.WriteByte(src[0])
	line, indent := lineWidth+1, "\n"+strings.Repeat(" ", depth+1)
	for first := true; dec.More(); first = false {
		member, err := prettyMember(dec, src[0] == '{', depth+1)
		if err != nil {
			return err
		}
		if !first {
			out.WriteByte(',')
		}
		// Short members share a line; one of several lines starts on its own.
		if many := bytes.ContainsRune(member, '\n'); many || line+len(member) > lineWidth {
			out.WriteString(indent)
			line = depth + len(member)
			if many {
				line = lineWidth + 1
			}
		} else {
			out.WriteByte(' ')
			line += len(member) + 2
		}
		out.Write(member)
	}
	out.WriteString("\n" + strings.Repeat(" ", depth))
	out.WriteByte(src[len(src)-1])
	return nil
}

// prettyMember is the next member of an object, or entry of a list.
func prettyMember(dec *json.Decoder, named bool, depth int) ([]byte, error) {
	var out bytes.Buffer
	if named {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, err := json.Marshal(token)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteString(": ")
	}
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	err := prettyValue(&out, value, depth)
	return out.Bytes(), err
}
