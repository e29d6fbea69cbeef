package judge

// Texts says of these fields only whether there is a text: prose whose wording is Kafka's own.
func Texts(fields ...string) Option { return func(o *options) { o.texts = fields } }

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
