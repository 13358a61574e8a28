package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// allNamespaces stands for every namespace in the allow-list.
const allNamespaces = "*"

// kubernetes reads and checks the settings of Kubernetes Secrets, when they
// are the destination.
func (l *loader) kubernetes(cfg *Config) Kubernetes {
	if cfg.Destination != DestinationKubernetes {
		return Kubernetes{}
	}
	k := Kubernetes{
		Namespace:  l.text(nameNamespace, ""),
		Namespaces: l.names(nameAllowlist, commaList),
	}
	if l.process[nameK8sSecrets].env {
		k.Secrets = l.names(nameK8sSecrets, commaList)
	} else {
		k.Secrets = l.names(nameK8sSecrets, yamlList)
	}
	if k.Namespace == "" && !l.src.Offline {
		l.fail(l.key(nameNamespace), "not set, but the destination k8s_secrets needs it; set it from the field metadata.namespace")
	}
	if cfg.Mode == ModeStandalone {
		l.checkStandalone(k)
	}
	return k
}

func (l *loader) checkStandalone(k Kubernetes) {
	if val := l.process[nameAllowlist]; !val.set {
		l.fail(l.key(nameAllowlist), "not set, but the mode standalone needs it; list namespaces, or use * for all")
	} else if slices.Contains(k.Namespaces, allNamespaces) && len(k.Namespaces) > 1 {
		l.fail(val.key, "* beside names; use one of the two")
	}
	if val := l.process[nameK8sSecrets]; val.set {
		l.fail(val.key, "the mode standalone chooses Secrets by their label; remove the list")
	}
}

// names reads a list and reports it when it is set but faulty or empty.
func (l *loader) names(name string, parse func(string) ([]string, error)) []string {
	val := l.process[name]
	if !val.set || val.bad {
		return nil
	}
	var names []string
	var err error
	if val.node != nil {
		for _, n := range val.node.Content {
			names = append(names, resolveAlias(n).Value)
		}
	} else {
		names, err = parse(val.text)
	}
	if err == nil && len(names) == 0 {
		err = errors.New("the list names nothing; add a name or remove the setting")
	}
	if err != nil {
		l.fail(val.key, "%v", err)
	}
	return names
}

// commaList reads the form of the environment; spaces do not count.
func commaList(text string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.Join(strings.Fields(name), ""); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// yamlList reads the form of the annotation, a YAML list of names.
func yamlList(text string) ([]string, error) {
	var nodes []yaml.Node
	if err := yaml.Unmarshal([]byte(text), &nodes); err != nil {
		return nil, errors.New("not a YAML list; write each name as \"- name\" on a line of its own")
	}
	var names []string
	for _, n := range nodes {
		switch {
		case n.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: not a name", n.Line)
		case n.Tag != "!!null" && n.Value != "":
			names = append(names, n.Value)
		}
	}
	return names, nil
}
