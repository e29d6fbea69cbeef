package judge

// Texts says of these fields only whether there is a text: prose whose wording is Kafka's own.
func Texts(fields ...string) Option { return func(o *options) { o.texts = fields } }

// Hidden leaves these fields out of the recording: Kafka gives them by chance, such as which of several members is the next leader of a group.
func Hidden(fields ...string) Option { return func(o *options) { o.hidden = fields } }

// hide replaces the values of these fields, wherever they are.
func hide(tree any, fields []string) {
	switch node := tree.(type) {
	case map[string]any:
		for _, field := range fields {
			if _, ok := node[field]; ok {
				node[field] = "<by chance>"
			}
		}
		for _, child := range node {
			hide(child, fields)
		}
	case []any:
		for _, child := range node {
			hide(child, fields)
		}
	}
}

// hideTexts replaces the texts of these fields, wherever they are.
func hideTexts(tree any, fields []string) {
	switch node := tree.(type) {
	case map[string]any:
		for _, field := range fields {
			if s, ok := node[field].(string); ok && s != "" {
				node[field] = "<text>"
			}
		}
		for _, child := range node {
			hideTexts(child, fields)
		}
	case []any:
		for _, child := range node {
			hideTexts(child, fields)
		}
	}
}
