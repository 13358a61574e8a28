package policy

import "go.yaml.in/yaml/v3"

// each reads the items of a list, or a single value. A missing value yields no
// items. It flattens nested lists, which anchors produce.
func each[T any](v *yaml.Node, read func(*yaml.Node) (T, error)) ([]T, error) {
	if isNull(unalias(v)) {
		return nil, nil
	}
	visits := 0
	items, err := flatten(nil, v, 0, &visits)
	var out []T
	for _, item := range items {
		x, err := read(item)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, err
}

func flatten(out []*yaml.Node, v *yaml.Node, depth int, visits *int) (_ []*yaml.Node, err error) {
	v = unalias(v)
	if v.Kind != yaml.SequenceNode || isTagged(v) {
		return append(out, v), nil
	}
	if depth > maxDepth {
		return nil, placeOf(v).errorf("the list is nested too deeply")
	}
	for _, item := range v.Content {
		if *visits++; *visits > maxItems {
			return nil, placeOf(v).errorf("the list has too many items")
		}
		if out, err = flatten(out, item, depth+1, visits); err != nil {
			return nil, err
		}
	}
	return out, nil
}
