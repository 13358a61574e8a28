package actuators

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/internal/terminal"
)

// withheld replaces a text of a service or a program.
const withheld = "(the text is withheld, because it contains a part of a value)"

// telling is the number of letters and digits in a row by which a text shows a value.
const telling = 6

// leastWhole is the length of a value, in bytes, from which a text shows the value if it
// contains it within a word. A shorter one must be a word of the text.
const leastWhole = 4

// public reports whether a part names who logs in. People need these names, and the log has
// them anyway.
func public(part string) bool { return slices.Contains([]string{username, "user", "login"}, part) }

// withholdValues returns a text of a service or a program for a log, an Event or a person, in at
// most limit bytes. It returns withheld if the text shows a part of a value, however it
// spells the value.
func withholdValues(text string, values [][]byte, limit int) string {
	for _, value := range values {
		if shows(text, value) {
			return withheld
		}
	}
	return terminal.Plain(brief.OneLine(text, limit))
}

// shows reports whether a text contains a part of a value: as it is, in hex, or in base64 at
// any offset. It compares letters and digits only, because line breaks, quotes and escapes
// are what differs between spellings.
func shows(text string, value []byte) bool {
	if len(value) == 0 {
		return false
	}
	spellings := []string{string(value), hex.EncodeToString(value)}
	for skip := range min(3, len(value)) {
		spellings = append(spellings, base64.StdEncoding.EncodeToString(value[skip:]))
	}
	var reduced []string
	for _, spelling := range spellings {
		if r := reduce(spelling); len([]rune(r)) >= telling {
			reduced = append(reduced, r)
		}
	}
	for _, read := range unescaped(text) {
		if len(value) >= leastWhole && strings.Contains(read, string(value)) || slices.Contains(strings.FieldsFunc(strings.ToLower(read), isNeither), reduce(string(value))) {
			return true
		}
		words := []rune(reduce(read))
		for i := 0; i+telling <= len(words); i++ {
			part := string(words[i : i+telling])
			for _, r := range reduced {
				if strings.Contains(r, part) {
					return true
				}
			}
		}
	}
	return false
}

// reduce keeps only letters and digits, in lower case.
func reduce(text string) string {
	return strings.Map(func(r rune) rune {
		if isNeither(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// isNeither reports whether a character is neither a letter nor a digit.
func isNeither(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// jsonEscape is an escape in a JSON text, or in a string of most languages.
var jsonEscape = lazyregexp.New(`\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)`)

// unescaped returns a text as it is, and as readers of JSON, of URLs and of HTML read it.
func unescaped(text string) []string {
	all := []string{text, html.UnescapeString(text), jsonEscape().ReplaceAllStringFunc(text, func(escape string) string {
		if digits := escape[2:]; digits != "" && (escape[1] == 'u' || escape[1] == 'x') {
			n, _ := strconv.ParseUint(digits, 16, 32)
			return string(rune(n))
		}
		if strings.Contains(`bfnrt`, escape[1:]) {
			return " "
		}
		return escape[1:]
	})}
	if url, err := url.QueryUnescape(text); err == nil {
		all = append(all, url)
	}
	return all
}
