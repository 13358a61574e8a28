package effective

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
)

// YAML encodes the statements in the policy language.
func YAML(list []Statement) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("---\n")
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(statementNodes(list)); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

func statementNodes(list []Statement) *yaml.Node {
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	if len(list) == 0 {
		seq.Style = yaml.FlowStyle
	}
	for _, st := range list {
		seq.Content = append(seq.Content, statementNode(st))
	}
	return seq
}

// statementNode uses the short form for a statement with only an id.
func statementNode(st Statement) *yaml.Node {
	if id, ok := st.Fields[0].Value.(string); ok && len(st.Fields) == 1 {
		return tagged(st.Tag, id)
	}
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!" + st.Tag}
	for _, f := range st.Fields {
		n.Content = append(n.Content, encodeString(f.Name), valueNode(f.Value))
	}
	return n
}

func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case string:
		return encodeString(v)
	case Ref:
		return tagged(v.Kind, v.ID)
	case []Statement:
		return statementNodes(v)
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	switch v := v.(type) {
	case []string:
		n.Style = yaml.FlowStyle
		for _, s := range v {
			n.Content = append(n.Content, encodeString(s))
		}
	case []Ref:
		for _, r := range v {
			n.Content = append(n.Content, tagged(r.Kind, r.ID))
		}
	case []Annotation:
		n.Kind = yaml.MappingNode
		for _, a := range v {
			n.Content = append(n.Content, encodeString(a.Name), encodeString(a.Value))
		}
	}
	return n
}

// encodeString encodes a string. It quotes a string that YAML 1.1 would also read as
// another type.
func encodeString(s string) *yaml.Node {
	n := &yaml.Node{}
	if n.Encode(s) != nil { // a string always encodes
		n.SetString(s)
	}
	if n.Style == 0 && !policy.Plain(s) {
		n.Style = yaml.SingleQuotedStyle
	}
	return n
}

func tagged(kind, id string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!" + kind, Value: id}
}

// MarshalJSON returns {"tag": {...}}.
func (s Statement) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	tag, err := json.Marshal(s.Tag)
	if err != nil {
		return nil, err
	}
	out.WriteString("{" + string(tag) + ":{")
	for i, f := range s.Fields {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeField(&out, f.Name, f.Value); err != nil {
			return nil, err
		}
	}
	out.WriteString("}}")
	return out.Bytes(), nil
}

func writeField(out *bytes.Buffer, name string, v any) error {
	if notes, ok := v.([]Annotation); ok {
		m := map[string]string{}
		for _, a := range notes {
			m[a.Name] = a.Value
		}
		v = m
	}
	k, err := json.Marshal(name)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	out.Write(k)
	out.WriteByte(':')
	out.Write(b)
	return nil
}

// MarshalJSON returns {"kind": "id"}.
func (r Ref) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]string{r.Kind: r.ID}) }
