package conformance

import (
	"net/url"
	"testing"
)

func (s *suite) single(t *testing.T) {
	get := func(id string) string { return "GET /secrets/{a}/variable/{p}%2F" + id }
	secret := map[string]string{"Content-Disposition": "attachment", "Content-Transfer-Encoding": "binary"}
	full := func(id string) string { return "{a}:variable:{p}/" + id }
	one := answer{status: 200, kind: asBytes, body: "one", header: secret}
	s.runAll(t, []exchange{
		{name: "value", as: alice, req: get("val1"), want: one},
		{name: "open slash", as: alice, req: "GET /secrets/{a}/variable/{p}/val1", want: one},
		{name: "double slash", as: alice, req: "GET /secrets/{a}/variable/{p}//val1", want: one},
		{name: "trailing slash", as: alice, req: "GET /secrets/{a}/variable/{p}/val1/", want: one},
		{name: "MIME type", as: alice, req: get("js"), want: answer{status: 200, kind: "application/json", body: `{"a":1}`, header: secret}},
		{name: "binary", as: alice, req: get("bin"), want: ok(asBytes, allBytes())},
		{name: "UTF-8", as: alice, req: get("utf8"), want: ok(asBytes, "pässwörd €")},
		{name: "base64 is ignored", as: alice, req: get("bin"), header: map[string]string{"Accept-Encoding": "base64"},
			want: answer{status: 200, kind: asBytes, body: allBytes(), header: map[string]string{"Content-Encoding": ""}}},
		{name: "gzip is ignored", as: alice, req: get("val1"), header: map[string]string{"Accept-Encoding": "gzip"}, want: one},
		{name: "never set, admin", as: s.admin(), req: get("empty"), want: missing(full("empty"))},
		{name: "never set", as: alice, req: get("empty"), want: missing(full("empty"))},
		{name: "missing, admin", as: s.admin(), req: get("nope"), want: missing(full("nope"))},
		{name: "missing", as: alice, req: get("nope"), want: missing(full("nope"))},
		{name: "visible, not executable", as: alice, req: get("readonly"), want: forbidden},
		{name: "the same, newer API", as: alice, req: get("readonly"), header: map[string]string{"Accept": "application/x.secretsmgr.v2beta+json"},
			want: answer{status: 403, kind: "application/x.secretsmgr.v2beta+json"}},
		{name: "invisible", as: alice, req: get("hidden"), want: missing(full("hidden"))},
		{name: "another account", as: alice, req: "GET /secrets/other/variable/{p}%2Fval1", want: missing("other:variable:{p}/val1")},
		{name: "another kind", as: alice, req: "GET /secrets/{a}/policy/{p}", want: nowhere},
		{name: "letter case", as: alice, req: get("VAL1"), want: missing(full("VAL1"))},
		{name: "invalid UTF-8", as: alice, req: get("%ff%fe"), want: answer{status: 400}},
		{name: "null byte", as: alice, req: get("a%00b"), want: badArgument("string contains null byte")},
		{name: "encoded once", as: alice, req: get("pct%41x"), want: missing(full("pctAx"))},
		{name: "plus for space", as: alice, req: get("sp+ace"), want: missing(full("sp+ace"))},
		{name: "range is ignored", as: alice, req: get("val1"), header: map[string]string{"Range": "bytes=0-0"}, want: one},
		{name: "HEAD", as: alice, req: "HEAD /secrets/{a}/variable/{p}%2Fval1", want: answer{status: 200, kind: asBytes,
			header: map[string]string{"ETag": `W/"7692c3ad3540bb803c020b3aee66cd88"`, "Content-Length": "3"}}},
		{name: "OPTIONS", as: alice, req: "OPTIONS /secrets/{a}/variable/{p}%2Fval1", want: nowhere},
		{name: "PUT", as: alice, req: "PUT /secrets/{a}/variable/{p}%2Fval1", body: "x", want: nowhere},
		{name: "PATCH", as: alice, req: "PATCH /secrets/{a}/variable/{p}%2Fval1", body: "x", want: nowhere},
		{name: "DELETE", as: alice, req: "DELETE /secrets/{a}/variable/{p}%2Fval1", want: nowhere},
	})
	for id, value := range values {
		s.run(t, exchange{name: "id " + id, as: s.admin(), req: get(url.PathEscape(id)), want: answer{status: 200, body: value}})
	}
}

func (s *suite) conditional(t *testing.T) {
	one := "GET /secrets/{a}/variable/{p}%2Fval1"
	two := "GET /secrets?variable_ids={a}:variable:{p}/val1,{a}:variable:{p}/val2"
	tag := `W/"7692c3ad3540bb803c020b3aee66cd88"`
	res, _ := s.do(t, exchange{as: alice, req: two})
	batchTag := res.Header.Get("ETag")
	res, _ = s.do(t, exchange{as: alice, req: "GET /resources/{a}/variable?limit=1"})
	listTag := res.Header.Get("ETag")
	match := func(v string) map[string]string { return map[string]string{"If-None-Match": v} }
	same := func(tag string) answer { return answer{status: 304, header: map[string]string{"ETag": tag}} }
	full := answer{status: 200, body: "one"}
	s.runAll(t, []exchange{
		{name: "single", as: alice, req: one, header: match(tag), want: same(tag)},
		{name: "batch", as: alice, req: two, header: match(batchTag), want: same(batchTag)},
		{name: "listing", as: alice, req: "GET /resources/{a}/variable?limit=1", header: match(listTag), want: same(listTag)},
		{name: "without a right", as: myhost, req: one, header: match(tag), want: missing("{a}:variable:{p}/val1")},
		{name: "strong form", as: alice, req: one, header: match(tag[2:]), want: full},
		{name: "list", as: alice, req: one, header: match(`"x", ` + tag), want: full},
		{name: "star", as: alice, req: one, header: match("*"), want: full},
		{name: "another value", as: alice, req: "GET /secrets/{a}/variable/{p}%2Fval2", header: match(tag), want: answer{status: 200, body: "two"}},
	})
}
