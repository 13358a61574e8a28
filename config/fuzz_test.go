package config

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzParseAnnotations: every line is either understood or reported, and what
// was understood means the same when it is written again.
func FuzzParseAnnotations(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "a=\"b\"\n", "a=b\n", "a=`b\\n`\r\n", "a='b'", "a=\"\\u00e4\\x41\\n\"",
		"conjur.org/conjur-secrets.g=\"- k: a/b\\n- c/d\\n\"\nconjur.org/secret-file-format.g=\"json\"\n",
		"a=\"1\"\na=\"2\"\n", "=\"x\"", "a=\"b\" ", "a=\"\xff\"", strings.Repeat("a\n", 200), "\uFEFF\uFEFFa=\"b\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, r := parse(string(data))
		lines := bytes.Count(data, []byte("\n")) + 1
		if len(values)+len(r.problems) > lines {
			t.Errorf("%d values and %d problems from %d lines", len(values), len(r.problems), lines)
		}
		for i, p := range r.problems {
			if i == maxMalformed && p.Key == "f" { // which sums up the rest
				continue
			}
			n, err := strconv.Atoi(strings.TrimPrefix(p.Key, "f:"))
			if err != nil || n < 1 || n > lines {
				t.Errorf("the key %q names no line", p.Key)
			}
		}
		var again strings.Builder
		again.WriteString("\uFEFF") // or a key might lose one
		for key, text := range values {
			again.WriteString(key + "=" + strconv.Quote(text) + "\n")
		}
		if got, r := parse(again.String()); !maps.Equal(got, values) || len(r.problems) > 0 {
			t.Errorf("%q becomes %q, %v", values, got, r.problems)
		}
	})
}

// FuzzParseFile: a configuration file is understood or reported, and never
// ends the process.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "containerMode: sidecar\n", "log: {level: warn}\nretry:\n  limit: 3\n",
		"targets:\n- name: g\n  secrets: [a/b, {k: c, content-type: base64}]\n  format: json\n",
		"a: &a [*a]", "? [x]\n: y\n", "log: &x {log: *x}", "targets: [~]", "- a", "<<: {a: b}", "kubernetes: {secrets: [a, 1]}",
		"kubernetes: {secrets: [{name: a, create: true, map: {k: v, l: {id: w, contentType: base64}}, groups: {g: {secrets: [x], template: t}}, restart: [deployment/a]}]}",
		"identities: [{name: a, namespaces: [b], secrets: [c/d], conjur: {login: l, apiKeyFile: /k}}]", "removal: {brake: off, grace: 1s}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, r := newValues(), report{}
		v.parseFile("f", data, &r)
		for _, p := range r.problems {
			if p.Key != "f" && !strings.HasPrefix(p.Key, "f:") || p.Message == "" {
				t.Errorf("the problem %q has no place or message", p)
			}
		}
		// What was read can be put together, and a fault is never fatal.
		l := &loader{values: v, src: Sources{Assume: Assumptions{Connection: true, Namespace: true, Files: true}, Templates: fstest.MapFS{}}}
		l.config()
		for group, g := range v.groups {
			if group != "" && !g["secrets"].set {
				t.Errorf("the group %q has no secrets and is not reported", group)
			}
		}
	})
}
