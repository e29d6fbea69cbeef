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
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		out.WriteString("\n" + strings.Repeat(" ", depth+1))
		if src[0] == '{' {
			var name json.RawMessage
			if err := decodeName(dec, &name); err != nil {
				return err
			}
			out.Write(name)
			out.WriteString(": ")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := prettyValue(out, value, depth+1); err != nil {
			return err
		}
	}
	out.WriteString("\n" + strings.Repeat(" ", depth))
	out.WriteByte(src[len(src)-1])
	return nil
}

func decodeName(dec *json.Decoder, name *json.RawMessage) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	*name, err = json.Marshal(token)
	return err
}
