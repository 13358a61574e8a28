package render

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// hostileCount is how many values each format is tried with.
const hostileCount = 10_000

// hostileValues makes values that formats are known to stumble on; the same
// ones each time.
func hostileValues() []string {
	fragments := []string{
		"\n", "\r", "\r\n", "\t", "\v", "\f", "\b", "\a", "\x1b", "\x7f", "\x00", "\x01", " ", "  ", "\u00a0", "\u0085", "\u2028", "\u2029", "\ufeff", "\ufffe", "\ufffd",
		`"`, `'`, `\`, `\\`, `\n`, `\"`, `\'`, `\$`, `\u0041`, `\x41`, "`", "`id`", "$", "$$", "$HOME", "${HOME}", "$(id)", "$((1+1))", "$'x'", "!", "!!", "~", "*", "?", "[a]", "{a,b}", "&", "|", ";", "<", ">", "#", " #", "%", "%s", "=", ":", ": ", "- ", ",", "{", "}", "[", "]", "(", ")", "@",
		"\xff", "\xc3", "\xe2\x80", "\xed\xa0\x80", "\xf5", "\x80", "\x81", "\x88", "\xc3'", "\xe2\x80\"", "é", "中", "🔑", "\U000e0001", "\U0010ffff", "\u00ad", "\u200b",
		"a", "b", "NAME", "0", "true", "null", "---", "...", "EOF", "export ", "k=v", "-----BEGIN KEY-----\nMIIB\n-----END KEY-----\n", "{{ secret \"x\" }}", "<!--", "&amp;",
	}
	r := rand.New(rand.NewPCG(1, 2))
	values := append([]string{"", strings.Repeat("x", 1<<20), strings.Repeat("'\"\\$\n", 1<<16), strings.Repeat("\u2028\xff", 1<<12)}, fragments...)
	for len(values) < hostileCount {
		var b strings.Builder
		switch r.IntN(4) {
		case 0: // any bytes
			for range r.IntN(40) {
				b.WriteByte(byte(r.UintN(256)))
			}
		case 1: // any text
			for range r.IntN(20) {
				if c := r.Int32N(utf8.MaxRune + 1); utf8.ValidRune(c) {
					b.WriteRune(c)
				}
			}
		default:
			for range 1 + r.IntN(6) {
				b.WriteString(fragments[r.IntN(len(fragments))])
			}
		}
		values = append(values, b.String())
	}
	return values
}
