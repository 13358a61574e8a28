package manifest_test

import (
	"strings"
	"testing"
)

func TestConjurMap(t *testing.T) {
	for text, want := range map[string]string{
		"{kind: Secret, data: {conjur-map: QTogcC9h}}":                                 "A: p/a",
		"{kind: Secret, stringData: {conjur-map: 'A: p/a'}}":                           "A: p/a",
		"{kind: Secret, data: {conjur-map: eA==}, stringData: {conjur-map: 'A: p/a'}}": "A: p/a",
		"{kind: Secret, data: {conjur-map: null}}":                                     "",
		"{kind: Secret}": "",
	} {
		if got, err := parse(t, text).Secrets[0].ConjurMap(); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"{kind: Secret, data: {conjur-map: top-secret}}":   "line 1: the value of conjur-map in data is not base64",
		"{kind: Secret, data: {conjur-map: 7}}":            "line 1: the value of conjur-map must be text",
		"{kind: Secret, stringData: {conjur-map: [a, b]}}": "line 1: the value of conjur-map must be text",
	} {
		if _, err := parse(t, text).Secrets[0].ConjurMap(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "top-secret") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

func TestWithData(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{
			"everything else stays", `# the shop's
apiVersion: v1
kind: Secret
metadata:
  name: s # short
  labels: {a: "1"}
data:
  mine: a2VlcA==
  A: b2xk
type: Opaque
`, `# the shop's
apiVersion: v1
kind: Secret
metadata:
  name: s # short
  labels: {a: "1"}
data:
  A: bmV3
  mine: a2VlcA==
type: Opaque
`,
		},
		{"no data yet", "kind: Secret\n", "kind: Secret\ndata:\n  A: bmV3\n"},
		{
			"stringData wins over data, and values over both",
			"kind: Secret\nstringData: {A: x, b: text, c: null}\ndata: {b: eA==, d: eQ==}\n",
			"kind: Secret\ndata:\n  A: bmV3\n  b: dGV4dA==\n  c: \"\"\n  d: eQ==\n",
		},
		{"words that YAML takes for others", "kind: Secret\ndata: {\"1\": null, \"yes\": \"true\"}\n", "kind: Secret\ndata:\n  \"1\": \"\"\n  A: bmV3\n  \"yes\": \"true\"\n"},
		{"an alias into what goes", "kind: Secret\nstringData: {n: &n name}\nmetadata: {name: *n}\n", "kind: Secret\ndata:\n  A: bmV3\n  \"n\": bmFtZQ==\nmetadata: {name: name}\n"},
	} {
		got, err := parse(t, c.text).Secrets[0].WithData(map[string][]byte{"A": []byte("new")})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// TestBoundsOfData: all values together have a MiB.
func TestBoundsOfData(t *testing.T) {
	for less := -1; less <= 1; less++ {
		own := "ab"[:1+less] // with each length of padding
		value := []byte(strings.Repeat("x", 1<<20+less-len(own)))
		_, err := parse(t, "kind: Secret\nstringData: {b: \""+own+"\"}\n").Secrets[0].WithData(map[string][]byte{"A": value})
		if (err == nil) != (less <= 0) {
			t.Errorf("data of the bound%+d, with %q: %v", less, own, err)
		}
	}
}

func TestWithDataShowsNoValue(t *testing.T) {
	s := parse(t, "kind: Secret\ndata: {a: 123456}\nstringData:\n  b: [top-secret]\n").Secrets[0]
	_, err := s.WithData(nil)
	if err == nil || !strings.Contains(err.Error(), "line 2: the value of a must be text") || !strings.Contains(err.Error(), "line 4: the value of b must be text") {
		t.Errorf("got %v, want both keys named", err)
	}
	if err != nil && (strings.Contains(err.Error(), "123456") || strings.Contains(err.Error(), "top-secret")) {
		t.Errorf("%v shows a value", err)
	}
	if _, err := parse(t, "kind: Secret\nmore: &x {a: *x}\n").Secrets[0].WithData(nil); err == nil {
		t.Error("an alias that contains itself was taken")
	}
}
