package config

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/secretsync/syncer/pkg/definitions"
	"github.com/secretsync/syncer/pkg/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// Node is the node that the process runs on, and where its own variables are.
type Node struct {
	Name string // empty: not known
	// SecretsBase is the path below which all variables are that a node may have
	// its own in the place of; empty: the whole account.
	SecretsBase string
}

// AnyNode is what a node is called that is not known, where that is assumed; see
// Assumptions.
const AnyNode = "NODE"

// node checks the node's name and the base.
func (l *loader) node(cfg *Config) {
	n := &cfg.Node
	if l.src.Node != "" {
		n.Name = l.src.Node
	}
	if n.Name != "" {
		if err := definitions.CheckNode(n.Name); err != nil {
			if l.src.Node != "" {
				l.fail("--node", "%v", err)
			} else {
				l.fail(l.key(nameNodeName), "%v; take it from the field spec.nodeName", err)
			}
			n.Name = ""
		}
	}
	n.SecretsBase = strings.Trim(n.SecretsBase, "/")
	if err := definitions.CheckNodeBase(n.SecretsBase); err != nil {
		l.fail(l.key(nameNodeBase), "%v", err)
		n.SecretsBase = ""
	}
}

// nodeSecrets puts the variables of the node into the entries of a group.
func (l *loader) nodeSecrets(t *targets.Target, g item, node Node) {
	val := g[nameNodeSecrets]
	choice, err := definitions.ParseNodeSecrets(val.text)
	if !val.set || val.bad || err != nil { // which is reported
		return
	}
	if !choice.All && len(choice.Aliases) == 0 {
		return
	}
	l.ofNode = true
	name := node.Name
	if name == "" {
		if !l.process[nameNodeName].set && l.src.Node == "" && !l.src.Assume.Node {
			l.fail(l.key(nameNodeName), "not set, but the group %q has secrets of the node's own; take it from the field spec.nodeName", t.Group)
		}
		name = AnyNode // for what else is wrong
	}
	entries, err := choice.Of(t.Entries, node.SecretsBase, name)
	if err != nil {
		l.failAll(val.key, err)
	}
	t.Entries = entries
}

// checkNodeToken checks that the token that logs in is one of this node: policy
// binds by what the token says, and the name only chooses.
func (l *loader) checkNodeToken(cfg *Config) {
	c := cfg.Conjur
	if c.AuthnType != AuthnJWT || l.src.Assume.Files || l.src.Node != "" || cfg.Node.Name == "" {
		return
	}
	token, err := safefile.Read(c.JWTTokenPath, maxFileBytes)
	if err != nil {
		return // it may come later, and says so itself
	}
	defer clear(token)
	if of := BoundTo(token).Node.Name; of != "" && of != cfg.Node.Name {
		l.fail(l.key(nameNodeName), "the node is %q, but the token in %s is one of the node %q; take the name from the field spec.nodeName", cfg.Node.Name, c.JWTTokenPath, of)
	}
}

// Bound is what a token of Kubernetes is bound to.
type Bound struct {
	Namespace string
	Pod       struct{ Name, UID string }
	Node      struct{ Name string }
}

// BoundTo returns what a token says that it is bound to; the zero Bound if it is
// none of Kubernetes.
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
