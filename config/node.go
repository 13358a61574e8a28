package config

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// AnyNode is the name of an unknown node, if Assumptions permit one.
const AnyNode = "NODE"

// node checks the node's name and the base.
func (l *loader) node(cfg *Config) {
	name := &cfg.Kubernetes.NodeName
	if l.src.Node != "" {
		*name = l.src.Node
	}
	if *name != "" {
		if err := definitions.CheckNode(*name); err != nil {
			if l.src.Node != "" {
				l.fail("--node", "%v", err)
			} else {
				l.fail(l.key("kubernetes.nodeName"), "%v; take it from the field spec.nodeName", err)
			}
			*name = ""
		}
	}
	cfg.NodeSecretsBase = strings.Trim(cfg.NodeSecretsBase, "/")
	if err := definitions.CheckNodeBase(cfg.NodeSecretsBase); err != nil {
		l.fail(l.key("nodeSecretsBase"), "%v", err)
		cfg.NodeSecretsBase = ""
	}
}

// nodeSecrets adds the node-specific variables to the entries of a group.
func (l *loader) nodeSecrets(t *targets.Target, g item, cfg *Config) {
	val := g["nodeSecrets"]
	choice, _ := definitions.ParseNodeSecrets(val.text) // its error was reported already
	if val.bad || !choice.All && len(choice.Aliases) == 0 {
		return
	}
	l.ofNode = true
	name := cfg.Kubernetes.NodeName
	if name == "" {
		if !l.process["kubernetes.nodeName"].set && l.src.Node == "" && !l.src.Assume.Node {
			l.fail(l.key("kubernetes.nodeName"), "not set, but the group %q has node-specific secrets; take it from the field spec.nodeName", t.Group)
		}
		name = AnyNode // to find other problems
	}
	entries, err := choice.Of(t.Entries, cfg.NodeSecretsBase, name)
	if err != nil {
		l.failAll(val.key, err)
	}
	t.Entries = entries
}

// checkNodeToken checks that the login token belongs to this node. Policy grants access
// by the content of the token. The name only selects the variables.
func (l *loader) checkNodeToken(cfg *Config) {
	c := cfg.Conjur
	if c.AuthnType != AuthnJWT || l.src.Assume.Files || l.src.Node != "" || cfg.Kubernetes.NodeName == "" {
		return
	}
	token, err := safefile.Read(c.JWTTokenPath, safefile.MaxInput)
	if err != nil {
		return // it may come later, and then reports the error
	}
	defer clear(token)
	if of := BoundTo(token).Node.Name; of != "" && of != cfg.Kubernetes.NodeName {
		l.fail(l.key("kubernetes.nodeName"), "the node is %q, but the token in %s is one of the node %q; take the name from the field spec.nodeName", cfg.Kubernetes.NodeName, c.JWTTokenPath, of)
	}
}

// Bound contains the objects that a Kubernetes token is bound to.
type Bound struct {
	Namespace string
	Pod       struct{ Name, UID string }
	Node      struct{ Name string }
}

// BoundTo returns the objects that a token is bound to, or the zero Bound if the token is
// not from Kubernetes.
func BoundTo(token []byte) Bound {
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return Bound{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Bound `json:"kubernetes.io"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return Bound{}
	}
	return claims.Bound
}
