package render

import (
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// fromJSON reads one JSON text. Numbers keep their digits. A key that is there twice, and
// half a surrogate pair, are errors, because readers would lose a value.
func fromJSON(r *run, a args) any {
	text := a.text(0)
	r.work.spend(elementWork * len(text)) // the shortest elements have one or two bytes
	if loneSurrogate(text) {
		panic(wrong(0, "has an escape of half a character"))
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v := decodeJSON(d, 0)
	if _, err := d.Token(); err != io.EOF {
		panic(wrong(0, "is not a single JSON text"))
	}
	return v
}

func decodeJSON(d *json.Decoder, depth int) any {
	switch token := nextToken(d).(type) {
	case json.Number:
		return numberOf(token.String())
	case json.Delim:
		if depth >= maxDepth {
			panic(tooNested())
		}
		if token == '[' {
			list := []any{}
			for d.More() {
				list = append(list, decodeJSON(d, depth+1))
			}
			nextToken(d)
			return list
		}
		m := map[string]any{}
		for d.More() {
			key := nextToken(d).(string)
			if _, twice := m[key]; twice {
				panic(wrong(0, "has a key twice in a map"))
			}
			m[key] = decodeJSON(d, depth+1)
		}
		nextToken(d)
		return m
	default:
		return token
	}
}

func nextToken(d *json.Decoder) json.Token {
	token, err := d.Token()
	if err != nil {
		panic(wrong(0, "is not JSON"))
	}
	return token
}

// loneSurrogate reports whether a JSON text has an escape of one half of a surrogate pair.
func loneSurrogate(text string) bool {
	unit := func(s string) (rune, bool) {
		if !strings.HasPrefix(s, `\u`) || len(s) < 6 {
			return 0, false
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		return rune(n), err == nil
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		first, ok := unit(text[i:])
		switch {
		case !ok:
			i++
		case utf16.IsSurrogate(first):
			second, ok := unit(text[i+6:])
			if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// toJSON writes a value as JSON. With html, the characters <, > and & are escaped.
func toJSON(v any, html, pretty bool) string {
	checkJSON(v)
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(html)
	if pretty {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		panic(wrong(0, "cannot be written as JSON"))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// checkJSON panics if JSON cannot hold a value without a change.
func checkJSON(v any) {
	switch v := v.(type) {
	case nil, bool, float64, jsonNumber:
	case string:
		if !utf8.ValidString(v) {
			panic(wrong(0, "has text that is not UTF-8; encode it with b64enc"))
		}
	case templateSecret:
		checkJSON(v.Alias)
		checkJSON(v.Value)
	case map[string]any:
		for key, value := range v {
			checkJSON(key)
			checkJSON(value)
		}
	default:
		if _, ok := integer(v); ok {
			return
		}
		list, ok := toList(v)
		if !ok {
			panic(wrong(0, "has "+typeName(v)+", which JSON cannot hold"))
		}
		for _, value := range list {
			checkJSON(value)
		}
	}
}

// parseURL takes a URL apart. userinfo keeps its escapes, and all else is decoded.
func parseURL(_ *run, a args) any {
	u, err := url.Parse(a.text(0))
	if err != nil || u.Scheme == "" {
		panic(wrong(0, "is not a URL"))
	}
	userinfo := ""
	if u.User != nil {
		userinfo = u.User.String()
	}
	return map[string]any{
		"scheme": u.Scheme, "userinfo": userinfo, "host": u.Host, "hostname": u.Hostname(), "path": u.Path,
		"query": u.RawQuery, "opaque": u.Opaque, "fragment": u.Fragment,
	}
}
