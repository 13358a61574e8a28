package render

import "unicode/utf8"

// longestSimpleKey bounds the characters of a YAML key with its quotes. A longer
// key needs a question mark (YAML 1.2, section 7.4.2).
const longestSimpleKey = 1024

// writeYAML writes one line of a YAML mapping, in double quotes.
func writeYAML(w *buffer, e entry) fault {
	if !utf8.Valid(e.value) {
		return notText
	}
	start := len(w.b)
	w.quoted([]byte(e.alias), escapeGo)
	if len(w.b)-start > longestSimpleKey {
		w.b = w.b[:start]
		w.writeText("? ")
		w.quoted([]byte(e.alias), escapeGo)
		w.byte('\n')
	}
	w.writeText(": ")
	w.quoted(e.value, escapeGo)
	return ""
}

// writeJSON writes one member of a JSON object.
func writeJSON(w *buffer, e entry) fault {
	if !utf8.Valid(e.value) {
		return notText
	}
	w.quoted([]byte(e.alias), escapeJSON)
	w.byte(':')
	w.quoted(e.value, escapeJSON)
	return ""
}
