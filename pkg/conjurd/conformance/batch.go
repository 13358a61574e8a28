package conformance

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"
)

// ids joins variables of the fixture for a batch request.
func ids(names ...string) string {
	for i, n := range names {
		names[i] = "{a}%3Avariable%3A{p}%2F" + n
	}
	return "GET /secrets?variable_ids=" + strings.Join(names, ",")
}

var (
	notAcceptable = answer{status: 406, kind: asJSON, body: `{"error":{"code":"not_acceptable","message":"CONJ00074E Issue encoding secret into JSON format, try including 'Accept-Encoding: base64' header in request."}}`}
	serverError   = answer{status: 500, kind: noPath}
)

func (s *suite) batch(t *testing.T) {
	full := func(id string) string { return "{a}:variable:{p}/" + id }
	both := ok(asJSON, `{"{a}:variable:{p}/val1":"one","{a}:variable:{p}/val2":"two"}`)
	first := ok(asJSON, `{"{a}:variable:{p}/val1":"one"}`)
	s.runAll(t, []exchange{
		{name: "two", as: alice, req: ids("val1", "val2"), want: both},
		{name: "literal", as: alice, req: "GET /secrets?variable_ids={a}:variable:{p}/val1,{a}:variable:{p}/val2", want: both},
		{name: "another order", as: alice, req: ids("val2", "val1"), want: both},
		{name: "encoded comma", as: alice, req: strings.Replace(ids("val1", "val2"), ",", "%2C", 1), want: both},
		{name: "one", as: alice, req: ids("val1"), want: first},
		{name: "twice the same", as: alice, req: ids("val1", "val1"), want: serverError,
			known: "duplicates are answered once instead of failing", ours: first},
		{name: "empty list", as: alice, req: "GET /secrets?variable_ids=", want: badArgument("variable_ids")},
		{name: "no list", as: alice, req: "GET /secrets", want: badArgument("variable_ids")},
		{name: "trailing comma", as: alice, req: ids("val1") + ",", want: first},
		{name: "double comma", as: alice, req: ids("val1") + ",," + strings.TrimPrefix(ids("val2"), "GET /secrets?variable_ids="), want: badArgument("variable_ids")},
		{name: "space after comma", as: alice, req: ids("val1") + ",%20{a}:variable:{p}/val2", want: missing(" " + full("val2"))},
		{name: "array", as: alice, req: "GET /secrets?variable_ids[]={a}:variable:{p}/val1", want: first},
		{name: "short id", as: alice, req: "GET /secrets?variable_ids={p}/val1", want: missing("{p}/val1")},
		{name: "another kind, admin", as: s.admin(), req: "GET /secrets?variable_ids={a}:policy:{p},{a}:variable:{p}/val1", want: missing("{a}:policy:{p}")},
		{name: "invalid UTF-8", as: alice, req: ids("%ff"), want: answer{status: 400}},
		{name: "null byte", as: alice, req: ids("a%00"), want: badArgument("string contains null byte")},
		{name: "POST", as: alice, req: "POST /secrets", body: "{}", want: nowhere},
		{name: "values of the newer API", as: alice, req: "POST /secrets/{a}/values", body: "{}",
			header: map[string]string{"Accept": "application/x.secretsmgr.v2beta+json"}, want: nowhere},
	})
	s.batchErrors(t, full)
	s.batchEncoding(t)
	s.batchIDs(t, full)
}

// batchErrors checks which answer takes precedence, and which variable it names.
func (s *suite) batchErrors(t *testing.T, full func(string) string) {
	s.runAll(t, []exchange{
		{name: "one missing", as: alice, req: ids("val1", "nope"), want: missing(full("nope"))},
		{name: "two missing", as: alice, req: ids("nope2", "val1", "nope1"), want: missing(full("nope2"))},
		{name: "one never set", as: alice, req: ids("val1", "empty"), want: missing(full("empty"))},
		{name: "never set and missing", as: alice, req: ids("empty", "nope"), want: missing(full("nope"))},
		{name: "never set, missing and a value", as: alice, req: ids("val1", "empty", "nope"), want: missing(full("nope"))},
		{name: "forbidden and a value", as: alice, req: ids("val1", "readonly"), want: forbidden},
		{name: "invisible and a value", as: alice, req: ids("val1", "hidden"), want: forbidden},
		{name: "invisible", as: alice, req: ids("hidden"), want: forbidden},
		{name: "missing and forbidden", as: alice, req: ids("nope", "readonly"), want: forbidden},
		{name: "never set and forbidden", as: alice, req: ids("empty", "readonly"), want: forbidden},
		{name: "missing, in base64", as: alice, req: ids("nope"), header: map[string]string{"Accept-Encoding": "base64"},
			want: answer{status: 404, kind: asJSON, body: missing(full("nope")).body, header: map[string]string{"Content-Encoding": ""}}},
		{name: "missing, newer API", as: alice, req: ids("nope"), header: map[string]string{"Accept": "application/x.secretsmgr.v2beta+json"},
			want: answer{status: 404, kind: asJSON, body: missing(full("nope")).body, header: map[string]string{"Vary": "Accept"}}},
	})
}

func (s *suite) batchEncoding(t *testing.T) {
	encoding := func(v string) map[string]string { return map[string]string{"Accept-Encoding": v} }
	encoded := func(body string) answer {
		return answer{status: 200, kind: asJSON, match: s.sameRows(body), header: map[string]string{"Content-Encoding": "base64"}}
	}
	bin := base64.StdEncoding.EncodeToString([]byte(allBytes()))
	var lines strings.Builder
	for ; len(bin) > 60; bin = bin[60:] {
		lines.WriteString(bin[:60] + `\n`)
	}
	s.runAll(t, []exchange{
		{name: "binary", as: alice, req: ids("val1", "bin"), want: notAcceptable},
		{name: "UTF-8", as: alice, req: ids("utf8"), want: ok(asJSON, `{"{a}:variable:{p}/utf8":"pässwörd €"}`)},
		{name: "base64", as: alice, req: ids("val1", "bin"), header: encoding("base64"),
			want: encoded(`{"{a}:variable:{p}/bin":"` + lines.String() + bin + `\n","{a}:variable:{p}/val1":"b25l\n"}`)},
		{name: "BASE64", as: alice, req: ids("val1"), header: encoding("BASE64"), want: encoded(`{"{a}:variable:{p}/val1":"b25l\n"}`)},
		{name: "base64 of UTF-8", as: alice, req: ids("utf8"), header: encoding("base64"), want: encoded(`{"{a}:variable:{p}/utf8":"cMOkc3N3w7ZyZCDigqw=\n"}`)},
		{name: "base64 in a list", as: alice, req: ids("val1"), header: encoding("base64, gzip"),
			want: answer{status: 200, kind: asJSON, body: `{"{a}:variable:{p}/val1":"one"}`, header: map[string]string{"Content-Encoding": ""}}},
		{name: "escapes", as: s.admin(), req: ids("escapes"),
			want: ok(asJSON, `{"{a}:variable:{p}/escapes":"a\"b\\c\n\u003c\u0026\u003e\u2028\u0001é"}`)},
	})
}

// sameRows matches a JSON object with these members in any order, because the
// genuine server's database does not order them.
func (s *suite) sameRows(want string) func(string) bool {
	return func(body string) bool {
		var a, b map[string]string
		return json.Unmarshal([]byte(s.fill(want)), &a) == nil && json.Unmarshal([]byte(body), &b) == nil && maps.Equal(a, b)
	}
}

// batchIDs checks that a batch can request every id without a comma.
func (s *suite) batchIDs(t *testing.T, full func(string) string) {
	for id, value := range values {
		if id == "comma,one" || id == "bin" {
			continue
		}
		s.run(t, exchange{name: "id " + id, as: s.admin(), req: ids(url.QueryEscape(id)), want: answer{status: 200, kind: asJSON, match: func(body string) bool {
			var got map[string]string
			return json.Unmarshal([]byte(body), &got) == nil && len(got) == 1 && got[s.fill(full(id))] == value
		}}})
	}
	s.runAll(t, []exchange{
		{name: "id with a comma", as: alice, req: ids("comma%2Cone"), want: missing(full("comma"))},
		{name: "plus is a space", as: alice, req: ids("sp+ace"), want: ok(asJSON, `{"{a}:variable:{p}/sp ace":"SPACE"}`)},
		{name: "plus is a space", as: alice, req: ids("plus+x"), want: missing(full("plus x"))},
	})
}
