package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Cases of the policy language: those recorded from the genuine server, and those
// derived from its rules.
var (
	//go:embed recorded.yaml
	recordedCases []byte
	//go:embed rules.yaml
	ruleCases []byte
)

// yard is the initial state of each case, in a separate policy.
const yard = `
- !policy
  id: "{y}"
  body:
  - !host web
  - !host job
  - !user eve
  - !group ops
  - !group dev
  - !layer farm
  - !variable key
  - !variable pin
  - !policy
    id: inner
    body:
    - !host cron
    - !group crew
    - !variable seed
`

// languageCase is a sequence of loads on a yard, and the facts that they add or
// remove. In all its texts {y} stands for the yard's policy. {d} stands for the
// same name with dashes, as in the names of users.
type languageCase struct {
	Name       string
	Loads      []policyLoad
	More, Less []string
}

// policyLoad is one load and its answer. The answer is 201 unless the load is
// refused.
type policyLoad struct {
	Text string
	As   string   // method; "" for PATCH
	In   string   // branch; "" for the yard
	Keys []string // roles whose keys the answer contains

	Error   string // the complete message of a 422
	Or      string // message instead, if the server has CONJUR_ACCOUNT
	Place   []int  // line and column in the error; none for most
	Invalid string // message about the text as a whole
	Refused bool   // a 422 with any message
}

func (s *suite) language(t *testing.T) {
	number := 0
	for _, file := range [][]byte{recordedCases, ruleCases} {
		var cases []languageCase
		if err := yaml.Unmarshal(file, &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			number++
			y := &yardRun{suite: s, id: fmt.Sprintf("%s/yard%03d", branch, number)}
			t.Run(c.Name, func(t *testing.T) { y.run(t, c) })
		}
	}
}

// yardRun is one case.
type yardRun struct {
	*suite
	id string
}

func (y *yardRun) run(t *testing.T, c languageCase) {
	y.load(t, "root", y.text(yard))
	t.Cleanup(func() { y.clear(t) })
	want := y.facts(t)
	for _, l := range c.Loads {
		y.step(t, l)
	}
	for _, less := range y.texts(c.Less) {
		i := slices.Index(want, less)
		if i < 0 {
			t.Fatalf("%q was not so before", less)
		}
		want = slices.Delete(want, i, i+1)
	}
	want = append(want, y.texts(c.More)...)
	got := y.facts(t)
	for _, f := range got {
		if !slices.Contains(want, f) {
			t.Errorf("too much: %q", f)
		}
	}
	for _, f := range want {
		if !slices.Contains(got, f) {
			t.Errorf("missing: %q", f)
		}
	}
}

func (y *yardRun) text(s string) string {
	return y.fill(strings.NewReplacer("{y}", y.id, "{d}", strings.ReplaceAll(y.id, "/", "-")).Replace(s))
}

func (y *yardRun) texts(list []string) []string {
	out := []string{}
	for _, s := range list {
		out = append(out, y.text(s))
	}
	return out
}

// step loads and checks the answer.
func (y *yardRun) step(t *testing.T, l policyLoad) {
	t.Helper()
	method, in := l.As, l.In
	if method == "" {
		method = "PATCH"
	}
	if in == "" {
		in = "{y}"
	}
	res, body := y.do(t, exchange{as: y.admin(), req: method + " /policies/{a}/policy/" + url.PathEscape(y.text(in)), body: y.text(l.Text)})
	y.check(t, y.answer(l), res, body)
}

func (y *yardRun) answer(l policyLoad) answer {
	bad := answer{status: 422, kind: asJSON}
	switch {
	case l.Refused:
		bad.match = contains(`{"error":{"code":"policy_invalid",`)
	case l.Invalid != "":
		return notValid("policy_text", l.Invalid)
	case len(l.Place) == 2:
		bad.body = fmt.Sprintf(`{"error":{"code":"policy_invalid","message":%s,"innererror":{"code":"policy_invalid","filename":"policy","line":%d,"column":%d}}}`,
			quoted(fmt.Sprintf("Error at line %d, column %d in policy : %s", l.Place[0], l.Place[1], y.text(l.Error))), l.Place[0], l.Place[1])
	case l.Or != "":
		return y.eitherText(y.text(l.Error), y.text(l.Or))
	case l.Error != "":
		bad.body = `{"error":{"code":"policy_invalid","message":` + quoted(y.text(l.Error)) + `}}`
	default:
		keys := y.texts(l.Keys)
		for i := range keys {
			keys[i] = y.target.Account + ":" + keys[i]
		}
		return answer{status: 201, kind: asJSON, match: y.loaded(keys...)}
	}
	return bad
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(b)
}

// clear deletes all objects of the case, roles first.
func (y *yardRun) clear(t *testing.T) {
	t.Helper()
	var text strings.Builder
	for _, kind := range []string{"host", "user", "group", "host_factory", "layer", "policy"} {
		for _, r := range y.list(t, kind) {
			fmt.Fprintf(&text, "- !delete { record: !%s %s }\n", strings.ReplaceAll(kind, "_", "-"), quoted(strings.SplitN(r.ID, ":", 3)[2]))
		}
	}
	if res, body := y.do(t, exchange{as: y.admin(), req: "PATCH /policies/{a}/policy/root", body: text.String()}); res.StatusCode != 201 {
		t.Errorf("deleting the case: status %d, body %q", res.StatusCode, body)
	}
}
