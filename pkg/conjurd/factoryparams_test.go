package conjurd

import (
	"strings"
	"testing"
)

// TestHostFactoryParameters follows the features host_factory_create_token and
// host_factory_create_host of Conjur 1.24.0, and its source.
func TestHostFactoryParameters(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, "- !layer web\n- !host-factory { id: hf, layers: [ !layer web ] }\n- !user blind\n- !user reader\n- !permit { role: !user reader, privileges: [ read ], resource: !host-factory hf }\n")
	const factory, year = "host_factory=dev:host_factory:hf", "&expiration=2099-01-01T00:00:00Z"
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	asJSON := map[string]string{"Content-Type": "application/json; charset=utf-8"}
	for _, c := range []struct {
		query, body string
		header      map[string]string
		as          string
		status      int
		holds       string
	}{
		{factory + year, "", nil, "", 200, `"expiration":"2099-01-01T00:00:00Z","cidr":[]`},
		{factory, year[1:], form, "", 200, ""},
		{factory + "&expiration=2020-01-01", year[1:], nil, "", 200, "2099"}, // the body wins
		{factory + year + "&cidr[]=10.0.0.0/8&cidr[]=1.2.3.4", "", nil, "", 200, `["10.0.0.0/8","1.2.3.4/32"]`},
		{"", `{"host_factory":"dev:host_factory:hf","expiration":"2099-01-01T00:00:00Z","count":2,"cidr":["10.0.0.0/8"]}`, asJSON, "", 200, `"10.0.0.0/8"`},
		{factory, year[1:], map[string]string{"Content-Type": "text/plain"}, "", 422, "expiration"},
		{factory + year, `[1]`, asJSON, "", 400, ""},
		{factory + year, `{`, asJSON, "", 400, ""},
		{factory + "&expiration=2099-01-01", "", nil, "", 200, "2099-01-01T00:00:00Z"},
		{factory + "&expiration=2099-01-01T00:00:00%2B0100", "", nil, "", 200, "2098-12-31T23:00:00Z"},
		{factory + "&expiration=2017-08-04T22:27:20%2B00:00", "", nil, "", 422, "must be in the future: 2017-08-04T22:27:20+00:00"},
		{factory + "&expiration=soon", "", nil, "", 422, "invalid ISO8601 datetime string: soon"},
		{factory, "", nil, "", 422, `"expiration"`},
		{year[1:], "", nil, "", 422, `"host_factory"`},
		{factory + year + "&count=0", "", nil, "", 422, "Invalid value for parameter 'count': 0"},
		{factory + year + "&cidr[]=123.234.0.0/16&cidr[]=1.895.abc.0/32", "", nil, "", 422, "Invalid IP address or CIDR range '1.895.abc.0/32'"},
		{factory + year + "&cidr[]=10.1.2.3/8", "", nil, "", 422, "Did you mean '10.0.0.0/8'?"},
		{"host_factory=dev:layer:web" + year, "", nil, "", 422, "Invalid resource kind: layer"},
		{"host_factory=dev:layer:web" + year, "", nil, "blind", 404, ""},
		{"host_factory=dev:host_factory:nope" + year, "", nil, "", 404, ""},
		{"host_factory=nope" + year, "", nil, "", 404, ""},
		{factory, "", nil, "blind", 404, ""},
		{factory, "", nil, "reader", 403, ""},
	} {
		if c.as == "" {
			c.as = "admin"
		}
		w := send(t, s, request{method: "POST", path: "/host_factory_tokens?" + c.query, body: c.body, header: c.header, as: c.as})
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.holds) {
			t.Errorf("%s %q by %s: status %d, %s", c.query, c.body, c.as, w.Code, w.Body)
		}
	}

	tokens := decode[[]struct{ Token string }](t, send(t, s, request{method: "POST", path: "/host_factory_tokens?" + factory + year, as: "admin"}))
	for _, c := range []struct {
		query, body, kind string
		status            int
		holds             string
	}{
		{"?id=a&annotations[k]=v", "", "", 201, `"name":"k","value":"v"`},
		{"", "id=b", "", 201, ":host:b"},
		{"?id=c", "id=d", "application/x-www-form-urlencoded", 201, ":host:d"},
		{"", `{"id":"e","annotations":{"n":3}}`, "application/json", 201, `"name":"n","value":"3"`},
		{"", "id=f", "text/plain", 422, ""},
		{"", "", "", 422, ""},
		{"?id=conjur/factories/x", "", "", 422, "Invalid id: conjur/factories/x"},
		{"?id=/conjur/x", "", "", 422, "Invalid id: /conjur/x"},
		{"?id=conjur-x", "", "", 201, ""},
	} {
		header := map[string]string{"Authorization": `Token token="` + tokens[0].Token + `"`}
		if c.kind != "" {
			header["Content-Type"] = c.kind
		}
		w := send(t, s, request{method: "POST", path: "/host_factories/hosts" + c.query, body: c.body, header: header})
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.holds) {
			t.Errorf("host %s %q: status %d, %s", c.query, c.body, w.Code, w.Body)
		}
	}
}
