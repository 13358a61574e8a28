package conformance

import (
	"fmt"
	"strings"
	"testing"
)

func (s *suite) set(t *testing.T) {
	set := "POST /secrets/{a}/variable/{p}%2Fver"
	get := "GET /secrets/{a}/variable/{p}%2Fver"
	s.runAll(t, []exchange{
		{name: "value", as: s.admin(), req: set, body: "v1", want: created},
		{name: "the same again", as: s.admin(), req: set, body: "v1", want: created},
		{name: "another", as: s.admin(), req: set, body: "v2", want: created},
		{name: "null byte", as: s.admin(), req: set, body: "\x00", want: created},
		{name: "form", as: s.admin(), req: set, body: "a=b&c=d", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, want: created},
		{name: "form is kept as it is", as: s.admin(), req: get, want: ok(asBytes, "a=b&c=d")},
		{name: "base64", as: s.admin(), req: set, body: "YWJj", header: map[string]string{"Content-Encoding": "base64"}, want: created},
		{name: "base64 is kept as it is", as: s.admin(), req: get, want: ok(asBytes, "YWJj")},
		{name: "trailing line feed", as: s.admin(), req: set, body: "trailing\n", want: created},
		{name: "trailing line feed is kept", as: s.admin(), req: get, want: ok(asBytes, "trailing\n")},
		{name: "false If-Match is ignored", as: s.admin(), req: set, body: "x", header: map[string]string{"If-Match": `W/"00"`}, want: created},
		{name: "empty", as: s.admin(), req: set, want: badArgument("'value' may not be empty")},
		{name: "blank", as: s.admin(), req: set, body: "  \n", want: badArgument("'value' may not be empty")},
		{name: "missing", as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2Fnope", body: "x", want: unknown("Variable", "variable", "{p}/nope")},
		{name: "visible, no update", as: alice, req: "POST /secrets/{a}/variable/{p}%2Fval1", body: "x", want: forbidden},
		{name: "invisible", as: alice, req: "POST /secrets/{a}/variable/{p}%2Fhidden", body: "x", want: unknown("Variable", "variable", "{p}/hidden")},
		{name: "expirations", as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2Fval2?expirations", want: created},
		{name: "expirations, no update", as: alice, req: "POST /secrets/{a}/variable/{p}%2Fval2?expirations", want: forbidden},
		{name: "value after expirations", as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fval2", want: ok(asBytes, "two")},
	})
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	s.runAll(t, []exchange{
		{name: "1 MiB", as: s.admin(), req: set, body: big, want: created},
		{name: "1 MiB back", as: s.admin(), req: get, want: ok(asBytes, big)},
	})
}

func (s *suite) versions(t *testing.T) {
	for i := 1; i <= 26; i++ {
		s.do(t, exchange{as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2Fmany", body: fmt.Sprintf("v%d", i)})
	}
	at := func(v string) string { return "GET /secrets/{a}/variable/{p}%2Fmany?version=" + v }
	gone := missing("{a}:variable:{p}/many")
	wrong := badArgument("invalid type for parameter 'version'")
	s.runAll(t, []exchange{
		{name: "newest", as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fmany", want: ok(asBytes, "v26")},
		{name: "a kept one", as: s.admin(), req: at("7"), want: ok(asBytes, "v7")},
		{name: "leading zero", as: s.admin(), req: at("07"), want: ok(asBytes, "v7")},
		{name: "leading space", as: s.admin(), req: at("%207"), want: ok(asBytes, "v7")},
		{name: "trimmed", as: s.admin(), req: at("6"), want: gone},
		{name: "zero", as: s.admin(), req: at("0"), want: gone},
		{name: "negative", as: s.admin(), req: at("-1"), want: gone},
		{name: "future", as: s.admin(), req: at("99"), want: gone},
		{name: "fraction", as: s.admin(), req: at("1.5"), want: wrong},
		{name: "word", as: s.admin(), req: at("latest"), want: wrong},
		{name: "empty", as: s.admin(), req: at(""), want: wrong},
		{name: "list", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fmany", want: answer{status: 200, kind: asJSON,
			match: contains(`"secrets":[{"version":7,"expires_at":null},`, `{"version":26,"expires_at":null}]}`)}},
	})
}
