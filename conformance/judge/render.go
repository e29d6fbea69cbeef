package judge

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// render turns a kmsg message into maps, lists and plain values under kmsg's field names, with what differs from run to run masked.
func (m *masks) render(msg any) map[string]any {
	v := reflect.Indirect(reflect.ValueOf(msg))
	tree := m.structure(v)
	delete(tree, "Version")
	return tree
}

func (m *masks) structure(v reflect.Value) map[string]any {
	m.learn(v)
	tree := map[string]any{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "UnknownTags" {
			if tags := v.Field(i).Interface().(kmsg.Tags); tags.Len() > 0 {
				tree[name] = renderTags(tags)
			}
			continue
		}
		tree[name] = m.field(name, v.Field(i))
	}
	return tree
}

func renderTags(tags kmsg.Tags) map[string]any {
	tree := map[string]any{}
	tags.Each(func(tag uint32, b []byte) { tree[fmt.Sprint(tag)] = hex.EncodeToString(b) })
	return tree
}

// learn takes the masks from a message, wherever an id stands beside its name.
func (m *masks) learn(v reflect.Value) {
	id, ok := fieldOf[[16]byte](v, "TopicID")
	if !ok {
		return
	}
	for _, field := range []string{"Topic", "Name"} {
		name, _ := fieldOf[string](v, field)
		if p, ok := fieldOf[*string](v, field); ok && p != nil {
			name = *p
		}
		if name != "" {
			m.learnID(id, name)
		}
	}
}

func fieldOf[T any](v reflect.Value, name string) (T, bool) {
	f := v.FieldByName(name)
	if !f.IsValid() {
		var zero T
		return zero, false
	}
	t, ok := f.Interface().(T)
	return t, ok
}

func (m *masks) field(name string, v reflect.Value) any {
	switch value := v.Interface().(type) {
	case [16]byte:
		return m.id(value)
	case []byte:
		return m.bytes(name, value)
	case string:
		return m.string(name, value)
	case int16:
		if strings.HasSuffix(name, "ErrorCode") {
			return ErrorName(value)
		}
		return value
	case int32:
		switch name {
		case "Port":
			if value == m.port {
				return "<port>"
			}
		case "SessionID":
			return m.session(value)
		}
		return value
	case int64:
		switch name {
		case "ProducerID", "ProducerIDFilters":
			return m.producer(value)
		case "FinalizedFeaturesEpoch":
			if value >= 0 {
				return "<epoch>"
			}
		}
		return m.number(value)
	}
	return m.composite(name, v)
}

func (m *masks) composite(name string, v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return m.field(name, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = m.field(name, v.Index(i))
		}
		return list
	case reflect.Struct:
		return m.structure(v)
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return fmt.Sprintf("%s (%d)", s, v.Interface())
	}
	return v.Interface()
}

func (m *masks) string(name, s string) any {
	if name == "Host" && s == m.host {
		return "<host>"
	}
	if len(s) > 1000 { // a name that is too long on purpose
		return fmt.Sprintf("%s... (%d bytes)", s[:20], len(s))
	}
	return m.text(s)
}

func (m *masks) bytes(name string, b []byte) any {
	switch {
	case b == nil:
		return nil
	case name == "Records" || name == "RecordBatches":
		return m.batches(b)
	}
	return printable(b)
}

// printable is b as text if it is some, else in hex. Long values are cut.
func printable(b []byte) any {
	if b == nil {
		return nil
	}
	s := string(b)
	if !utf8.ValidString(s) {
		s = "0x" + hex.EncodeToString(b)
	}
	if len(s) > 200 {
		return fmt.Sprintf("%s... (%d bytes)", s[:40], len(b))
	}
	return s
}

// summary leaves out what is zero, empty or null, of a request.
func summary(tree map[string]any) map[string]any {
	for name, child := range tree {
		switch node := child.(type) {
		case nil:
			delete(tree, name)
		case map[string]any:
			summary(node)
		case []any:
			for _, entry := range node {
				if object, ok := entry.(map[string]any); ok {
					summary(object)
				}
			}
		default:
			if reflect.ValueOf(child).IsZero() {
				delete(tree, name)
			}
		}
	}
	return tree
}

// ErrorName is an error code with its name.
func ErrorName(code int16) string {
	switch err := kerr.TypedErrorForCode(code); {
	case code == 0:
		return "NONE"
	case err == nil || err.Code != code:
		return fmt.Sprintf("UNNAMED (%d)", code)
	default:
		return fmt.Sprintf("%s (%d)", err.Message, code)
	}
}

// sortLists orders every list under one of these field names by its entries' names, then by what is in them: where Kafka's order is that of a hash map.
func sortLists(tree any, fields []string) {
	switch node := tree.(type) {
	case map[string]any:
		for name, child := range node {
			sortLists(child, fields)
			if list, ok := child.([]any); ok && slices.Contains(fields, name) {
				slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(sortKey(a), sortKey(b)) })
			}
		}
	case []any:
		for _, child := range node {
			sortLists(child, fields)
		}
	}
}

func sortKey(entry any) string {
	var key strings.Builder
	if object, ok := entry.(map[string]any); ok {
		for _, field := range nameFields {
			if name, ok := object[field]; ok {
				key.WriteString(compact(name) + " ")
			}
		}
	}
	key.WriteString(compact(entry))
	return key.String()
}

// compact is a value on one line: text as it is, anything else as JSON.
func compact(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
