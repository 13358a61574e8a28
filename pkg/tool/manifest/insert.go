package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// Addition is what a Pod gets.
type Addition struct {
	Init    corev1.Container // the first init container
	Volumes []corev1.Volume
	Mounts  []corev1.VolumeMount
	Env     []corev1.EnvVar
	Readers []string // the names of the containers that get Mounts and Env
}

// With returns the manifest's texts with additions to the Pods of its workloads. It only
// inserts lines; every other byte stays. A Pod must be written in block style where lines
// are inserted.
func (m *Manifest) With(additions map[*Workload]Addition) ([][]byte, error) {
	var problems []error
	out := make([][]byte, len(m.texts))
	for i, t := range m.texts {
		var lines []insertion
		for _, w := range m.Workloads {
			a, ok := additions[w]
			if !ok || w.Text != i {
				continue
			}
			more, err := w.insertions(a)
			lines = append(lines, more...)
			problems = append(problems, within(w.String(), err))
		}
		if errors.Join(problems...) == nil {
			out[i] = insert(t.bytes, lines)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return out, m.checkInserted(out, additions)
}

// insertion is YAML that comes before a line, indented to a column. Both count from 1.
type insertion struct {
	line, column int
	yaml         []byte
}

func insert(text []byte, lines []insertion) []byte {
	slices.SortStableFunc(lines, func(a, b insertion) int { return a.line - b.line })
	var out []byte
	done := 0
	for _, l := range lines {
		at := offset(text, l.line, 1)
		out = append(out, text[done:at]...)
		for line := range bytes.Lines(l.yaml) {
			out = append(append(out, strings.Repeat(" ", l.column-1)...), line...)
		}
		done = at
	}
	return append(out, text[done:]...)
}

// insertions finds the places in a workload's Pod.
func (w *Workload) insertions(a Addition) (lines []insertion, err error) {
	add := func(in *yaml.Node, key, before string, items any) {
		l, problem := place(in, key, before, items)
		if problem != nil {
			_, at := pair(in, key)
			problem = fmt.Errorf("line %d: cannot insert %s: %w", cmp.Or(at, in).Line, key, problem)
		}
		lines, err = append(lines, l), errors.Join(err, problem)
	}
	add(w.spec, "initContainers", "containers", []corev1.Container{a.Init})
	add(w.spec, "volumes", "containers", a.Volumes)
	for _, list := range []string{"initContainers", "containers"} {
		_, containers := pair(w.spec, list)
		if containers == nil {
			continue
		}
		for _, c := range containers.Content {
			if slices.Contains(a.Readers, nameIn(c)) {
				add(c, "volumeMounts", "", a.Mounts)
				if len(a.Env) > 0 {
					add(c, "env", "", a.Env)
				}
			}
		}
	}
	return lines, err
}

// place finds where items go that begin the list of a key in a map. Without the key, they
// go with the key before another one; "" is the second one.
func place(in *yaml.Node, key, before string, items any) (insertion, error) {
	text, err := sigsyaml.Marshal(items)
	if err != nil {
		return insertion{}, err
	}
	if in.Kind == yaml.AliasNode {
		return insertion{}, fmt.Errorf("*%s stands for another map; write that map here instead", in.Value)
	}
	if in.Style&yaml.FlowStyle != 0 {
		return insertion{}, errors.New("the map is in braces; write each key on its own line")
	}
	if _, list := pair(in, key); list != nil {
		switch {
		case list.Kind == yaml.AliasNode:
			return insertion{}, fmt.Errorf("*%s stands for another list; write that list here instead", list.Value)
		case list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0:
			return insertion{}, errors.New(`the list is empty or in brackets; remove it if it is empty, or write each item on a line that begins with "- "`)
		}
		return insertion{list.Line, list.Column, text}, nil
	}
	next, _ := pair(in, before)
	if before == "" && len(in.Content) > 2 {
		next = in.Content[2]
	}
	if next == nil || next.Line == in.Content[0].Line && next != in.Content[0] {
		return insertion{}, errors.New("there is no line before which it can be; write each key on its own line")
	}
	return insertion{next.Line, next.Column, append([]byte(key+":\n"), text...)}, nil
}

// pair returns the nodes of a key and its value in a map, or nil.
func pair(in *yaml.Node, key string) (name, value *yaml.Node) {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == key {
			return in.Content[i], in.Content[i+1]
		}
	}
	return nil, nil
}

// checkInserted checks that the new texts have the additions, and else the same workloads.
func (m *Manifest) checkInserted(texts [][]byte, additions map[*Workload]Addition) error {
	after, err := Parse(texts...)
	if err == nil && len(after.Workloads) == len(m.Workloads) {
		same := true
		for i, w := range m.Workloads {
			want := *w.Pod.DeepCopy()
			if a, ok := additions[w]; ok {
				a.to(&want.Spec)
			}
			same = same && reflect.DeepEqual(want, after.Workloads[i].Pod)
		}
		if same {
			return nil
		}
	}
	return fmt.Errorf("the sidecar cannot be written into the manifest without changing something else; write it by hand")
}

// to makes the addition to a Pod, in the order of the text.
func (a Addition) to(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if slices.Contains(a.Readers, list[i].Name) {
				list[i].VolumeMounts = slices.Concat(a.Mounts, list[i].VolumeMounts)
				if len(a.Env) > 0 {
					list[i].Env = slices.Concat(a.Env, list[i].Env)
				}
			}
		}
	}
	spec.InitContainers = slices.Concat([]corev1.Container{a.Init}, spec.InitContainers)
	spec.Volumes = slices.Concat(a.Volumes, spec.Volumes)
}
