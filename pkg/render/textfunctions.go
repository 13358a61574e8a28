package render

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"hash/adler32"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textFunctions change and encode text. Those that take text apart count letters (Unicode
// code points). They refuse text that is not UTF-8.
func textFunctions() []function {
	return []function{
		{name: "upper", params: "text", call: func(_ *run, a args) any { return strings.ToUpper(a.text(0)) }},
		{name: "lower", params: "text", call: func(_ *run, a args) any { return strings.ToLower(a.text(0)) }},
		{name: "trim", params: "bytes", most: mostCopied, call: func(_ *run, a args) any { return strings.TrimSpace(a.text(0)) }},
		{name: "trimAll", params: "text text", call: func(r *run, a args) any {
			r.work.call(len(a.text(0)) * len(a.text(1)) / argumentPart)
			return strings.Trim(a.text(1), a.text(0))
		}},
		{name: "trimPrefix", params: "text text", most: mostCopied, call: func(_ *run, a args) any { return strings.TrimPrefix(a.text(1), a.text(0)) }},
		{name: "trimSuffix", params: "text text", most: mostCopied, call: func(_ *run, a args) any { return strings.TrimSuffix(a.text(1), a.text(0)) }},
		{name: "nospace", params: "text", call: nospace},
		{name: "contains", params: "bytes bytes", most: mostCopied, call: func(_ *run, a args) any { return strings.Contains(a.text(1), a.text(0)) }},
		{name: "hasPrefix", params: "bytes bytes", most: mostCopied, call: func(_ *run, a args) any { return strings.HasPrefix(a.text(1), a.text(0)) }},
		{name: "hasSuffix", params: "bytes bytes", most: mostCopied, call: func(_ *run, a args) any { return strings.HasSuffix(a.text(1), a.text(0)) }},
		{name: "trunc", params: "int text", most: mostCopied, call: trunc},
		{name: "substr", params: "int int text", most: mostCopied, call: substr},
		{name: "repeat", params: "int bytes", most: mostCopied, call: func(_ *run, a args) any { return repeat(a, a.text(1)) }},
		{name: "indent", params: "int bytes", call: func(_ *run, a args) any { return indent(a) }},
		{name: "nindent", params: "int bytes", call: func(_ *run, a args) any { return "\n" + indent(a) }},
		{name: "replace", params: "text text text", call: replace},
		{name: "quote", params: "scalar", most: mostWalked, call: quote},
		{name: "squote", params: "scalar", most: mostWalked, call: squote},
		{name: "toString", params: "scalar", most: mostWalked, call: func(_ *run, a args) any { return a.text(0) }},
		{name: "base", params: "text", call: func(_ *run, a args) any { return path.Base(somePath(a)) }},
		{name: "dir", params: "text", call: func(_ *run, a args) any { return path.Dir(somePath(a)) }},

		{name: "b32enc", params: "bytes", call: func(_ *run, a args) any { return base32.StdEncoding.EncodeToString([]byte(a.text(0))) }},
		{name: "b32dec", params: "bytes", call: func(_ *run, a args) any {
			b, err := base32.StdEncoding.DecodeString(a.text(0))
			return decoded(b, err, "is not base32")
		}},
		{name: "sha1sum", params: "bytes", most: mostCopied, call: func(_ *run, a args) any { return fmt.Sprintf("%x", sha1.Sum([]byte(a.text(0)))) }},
		{name: "sha256sum", params: "bytes", most: mostCopied, call: func(_ *run, a args) any { return fmt.Sprintf("%x", sha256.Sum256([]byte(a.text(0)))) }},
		{name: "sha512sum", params: "bytes", most: mostCopied, call: func(_ *run, a args) any { return fmt.Sprintf("%x", sha512.Sum512([]byte(a.text(0)))) }},
		{name: "adler32sum", params: "bytes", most: mostCopied, call: func(_ *run, a args) any {
			return strconv.FormatUint(uint64(adler32.Checksum([]byte(a.text(0)))), 10)
		}},
	}
}

func b64enc(_ *run, a args) any { return base64.StdEncoding.EncodeToString([]byte(a.text(0))) }

func b64dec(_ *run, a args) any {
	b, err := base64.StdEncoding.DecodeString(a.text(0))
	return decoded(b, err, "is not base64")
}

func decoded(b []byte, err error, fault string) string {
	if err != nil {
		panic(wrong(0, fault))
	}
	return string(b)
}

func nospace(_ *run, a args) any {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, a.text(0))
}

// letters returns the offset of the letter at an index, or false beyond the end. It panics
// before a mark, such as an accent, which belongs to the letter before it.
func letters(s string, index int) (offset int, ok bool) {
	for range index {
		if offset == len(s) {
			return 0, false
		}
		_, width := utf8.DecodeRuneInString(s[offset:])
		offset += width
	}
	if next, _ := utf8.DecodeRuneInString(s[offset:]); offset > 0 && unicode.Is(unicode.M, next) {
		panic(failure("it would cut between a letter and its mark"))
	}
	return offset, true
}

// trunc keeps at most the first letters, or with a negative number the last ones.
func trunc(_ *run, a args) any {
	n, s := a.int(0), a.text(1)
	if n < 0 {
		if n = max(utf8.RuneCountInString(s)+n, 0); n == 0 {
			return s
		}
		offset, _ := letters(s, n)
		return s[offset:]
	}
	if n > len(s) {
		return s
	}
	if offset, ok := letters(s, n); ok {
		return s[:offset]
	}
	return s
}

// substr returns the letters from an index to another, which may be -1 for the end.
func substr(_ *run, a args) any {
	start, end, s := a.int(0), a.int(1), a.text(2)
	if start < 0 || start > len(s) {
		panic(wrong(0, "is outside of the text"))
	}
	from, ok := letters(s, start)
	if !ok {
		panic(wrong(0, "is outside of the text"))
	}
	if end == -1 {
		return s[from:]
	}
	if end < start || end > len(s) {
		panic(wrong(1, "is outside of the text; -1 means its end"))
	}
	width, ok := letters(s[from:], end-start)
	if !ok {
		panic(wrong(1, "is outside of the text; -1 means its end"))
	}
	return s[from : from+width]
}

func repeat(a args, s string) string {
	n := a.int(0)
	if n < 0 {
		panic(wrong(0, "is negative"))
	}
	fits(n, len(s))
	return strings.Repeat(s, n)
}

func indent(a args) string {
	fits(a.int(0), strings.Count(a.text(1), "\n")+1)
	pad := repeat(a, " ")
	return pad + strings.ReplaceAll(a.text(1), "\n", "\n"+pad)
}

func replace(_ *run, a args) any {
	old, fresh, s := a.text(0), a.text(1), a.text(2)
	if old == "" {
		panic(wrong(0, "is empty"))
	}
	fits(strings.Count(s, old), len(fresh))
	return strings.ReplaceAll(s, old, fresh)
}

func somePath(a args) string {
	if a.text(0) == "" {
		panic(wrong(0, "is empty"))
	}
	return a.text(0)
}

// quote writes text in double quotes, as JSON, YAML and TOML read it.
func quote(_ *run, a args) any {
	if !utf8.ValidString(a.text(0)) {
		panic(wrong(0, "is not UTF-8"))
	}
	var w buffer
	w.quoted([]byte(a.text(0)), func(w *buffer, r rune) {
		if r > 0xFFFF { // these readers write it in different ways
			w.writeText(string(r))
			return
		}
		escapeJSON(w, r)
	})
	return string(w.b)
}

// squote writes text in single quotes. Readers differ in how they write such a quote, and
// line breaks, between them.
func squote(_ *run, a args) any {
	if strings.ContainsAny(a.text(0), "'\n\r") {
		panic(wrong(0, "has a single quote or a line break; use quote"))
	}
	return "'" + a.text(0) + "'"
}
