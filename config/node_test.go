package config_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/targets"
)

var onNode = connection.with(dict{"MY_NODE_NAME": "n1"})

func TestSecretsOfANode(t *testing.T) {
	entry := func(variable, own string) targets.Entry {
		return targets.Entry{Alias: "k", Variable: variable, Override: own, ContentType: targets.ContentText}
	}
	for name, c := range map[string]struct {
		annotations dict
		want        targets.Entry
	}{
		"not":         {dict{"node-secrets.g": "false"}, entry("a/b", "")},
		"general":     {dict{"node-secrets.g": "true"}, entry("a/b", "node/n1/a/b")},
		"of a user":   {dict{"node-secrets.g": "true", "conjur-secrets.g": "- k: user/u/b"}, entry("user/u/b", "user/u/node/n1/b")},
		"user alone":  {dict{"node-secrets.g": "true", "conjur-secrets.g": "- k: user/u"}, entry("user/u", "node/n1/user/u")},
		"base":        {dict{"node-secrets.g": "true", "node-secrets-base": "/a/", "conjur-secrets.g": "- k: a/b/c"}, entry("a/b/c", "a/node/n1/b/c")},
		"base, user":  {dict{"node-secrets.g": "true", "node-secrets-base": "a", "conjur-secrets.g": "- k: a/user/u/c"}, entry("a/user/u/c", "a/user/u/node/n1/c")},
		"policy path": {dict{"node-secrets.g": "true", "conjur-secrets-policy-path.g": "p"}, entry("p/a/b", "node/n1/p/a/b")},
		"alias":       {dict{"node-secrets.g": " k "}, entry("a/b", "node/n1/a/b")},
		"required":    {dict{"node-secrets.g": "required"}, entry("node/n1/a/b", "")},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := group.with(dict{"conjur-secrets.g": "- k: a/b"}).with(c.annotations)
			cfg, _ := load(t, sources(t, annotations, onNode))
			if got := cfg.Targets[0].Entries; !slices.Equal(got, []targets.Entry{c.want}) {
				t.Errorf("entries %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSingleSecretsOfANode(t *testing.T) {
	cfg, _ := load(t, sources(t, group.with(dict{
		"conjur-secrets.g": "- a: x/a\n- b: x/b\n- c: x/c", "node-secrets.g": "c, a",
		"conjur-secrets.h": "- a: x/a", "secret-file-path.h": "h.yaml",
	}), onNode))
	var own []string
	for _, target := range cfg.Targets {
		for _, e := range target.Entries {
			own = append(own, e.Override)
		}
	}
	if want := []string{"node/n1/x/a", "", "node/n1/x/c", ""}; !slices.Equal(own, want) {
		t.Errorf("the node's own %q, want %q", own, want)
	}
}

func TestSecretsOfANodeInTheFile(t *testing.T) {
	src := sources(t, nil, onNode)
	src.ConfigFile.Name = writeFile(t, "config.yaml", `
secretsDestination: file
nodeSecretsBase: data
targets:
- {name: all, nodeSecrets: true, secrets: [{k: data/b}]}
- {name: some, nodeSecrets: "k", secrets: [{k: data/b}, {l: c}]}
`)
	cfg, _ := load(t, src)
	for _, target := range cfg.Targets {
		if own := target.Entries[0].Override; own != "data/node/n1/b" {
			t.Errorf("%s: %q", target.Key, own)
		}
	}
}

func TestSecretsOfANodeProblems(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, env dict
		problems         []string
	}{
		"no node": {dict{"node-secrets.g": "true"}, dict{"MY_NODE_NAME": ""},
			[]string{`MY_NODE_NAME: not set, but the group "g" has node-specific secrets`}},
		"odd node": {dict{"node-secrets.g": "true"}, dict{"MY_NODE_NAME": "a/b"},
			[]string{`MY_NODE_NAME: "a/b" is not the name of a node`}},
		"dots": {dict{"node-secrets.g": "true"}, dict{"MY_NODE_NAME": ".."},
			[]string{`MY_NODE_NAME: ".." is not the name of a node`}},
		"by hand": {dict{"node-secrets.g": "true", "conjur-secrets.g": "- node/n2/b\n- user/u/node/n1/c"}, nil,
			[]string{`conjur.org/node-secrets.g: the variable "node/n2/b" is that of a node already`, `conjur.org/node-secrets.g: the variable "user/u/node/n1/c" is that of a node already`}},
		"two bases": {dict{"node-secrets.g": "true", "node-secrets-base": "a, b"}, nil,
			[]string{`conjur.org/node-secrets-base: "a, b" is not one path; there is one base`}},
		"odd base": {dict{"node-secrets.g": "true", "node-secrets-base": "a//b"}, nil,
			[]string{`conjur.org/node-secrets-base: "a//b" is not the path of a policy`}},
		"not below": {dict{"node-secrets.g": "true", "node-secrets-base": "data"}, nil,
			[]string{`conjur.org/node-secrets.g: the variable "a/b" is not below "data"`}},
		"all variables": {dict{"node-secrets.g": "true", "conjur-secrets.g": "*"}, nil,
			[]string{`conjur.org/node-secrets.g: "*" stands for many variables`}},
		"no such alias": {dict{"node-secrets.g": "k,nope"}, nil,
			[]string{`conjur.org/node-secrets.g: the group has no alias "nope"`}},
		"empty": {dict{"node-secrets.g": "k,"}, nil,
			[]string{`conjur.org/node-secrets.g: "k," is none of true, false, required`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := config.Load(sources(t, group.with(c.annotations), onNode.with(c.env)).Read())
			assertProblems(t, err, c.problems...)
		})
	}
}

// The token says which node it is of, and policy binds by that.
func TestTokenOfAnotherNode(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, c := range map[string]struct {
		token   string
		problem bool
	}{
		"this":    {token(`{"kubernetes.io":{"node":{"name":"n1"}}}`), false},
		"another": {token(`{"kubernetes.io":{"node":{"name":"n2"}}}`), true},
		"none":    {token(`{"kubernetes.io":{"namespace":"ns"}}`), false},
		"odd":     {token(`{"kubernetes.io":"n2"}`), false},
		"no JWT":  {"n2", false},
	} {
		for _, choice := range []string{"true", "required"} {
			t.Run(name+" "+choice, func(t *testing.T) {
				path := writeFile(t, "token", c.token)
				env := onNode.with(dict{"CONJUR_AUTHN_API_KEY": "", "CONJUR_AUTHN_URL": "https://conjur.example.com/authn-jwt/k8s", "JWT_TOKEN_PATH": path})
				_, _, err := config.Load(sources(t, group.with(dict{"node-secrets.g": choice}), env).Read())
				var want []string
				if c.problem {
					want = []string{fmt.Sprintf(`MY_NODE_NAME: the node is "n1", but the token in %s is one of the node "n2"`, path)}
				}
				assertProblems(t, err, want...)
			})
		}
	}
}

// assertProblems checks keys and beginnings of the problems, each as "key: text".
func assertProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []config.Problem
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		got = invalid.Problems
	}
	if len(got) != len(want) || err == nil != (len(want) == 0) {
		t.Fatalf("problems %v, want %q", err, want)
	}
	for i, p := range got {
		if !strings.HasPrefix(p.Key+": "+p.Message, want[i]) {
			t.Errorf("problem %q: %q, want %q", p.Key, p.Message, want[i])
		}
	}
}
