package render

import (
	"bufio"
	"bytes"
	"unicode/utf8"
)

// Values that an env-file cannot hold. Versions of docker differ in whether they
// strip enclosing quotes, so no form of such a value is right for all versions.
const (
	hasLineBreak fault = "a line feed, or a carriage return at the end, cannot be written"
	isQuoted     fault = "it begins and ends with the same quote, which some versions of docker strip"
	isTooLong    fault = "with its alias it is longer than the 65535 bytes of a line"
)

// writeEnvFile writes a line for docker run --env-file. Everything after the equal
// sign is the value, and there are no escapes.
func writeEnvFile(w *buffer, e entry) fault {
	v := e.value
	switch {
	case bytes.IndexByte(v, 0) >= 0:
		return hasNUL
	case !utf8.Valid(v):
		return notText
	case bytes.IndexByte(v, '\n') >= 0, bytes.HasSuffix(v, []byte("\r")):
		return hasLineBreak
	case len(v) > 1 && (v[0] == '"' || v[0] == '\'') && v[0] == v[len(v)-1]:
		return isQuoted
	case len(e.alias)+1+len(v) >= bufio.MaxScanTokenSize:
		return isTooLong
	}
	w.writeText(e.alias)
	w.byte('=')
	w.raw(v)
	return ""
}
