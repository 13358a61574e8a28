package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/internal/lazyregexp"
)

// imageName is the form of an image's name. YAML needs no quotes for such a text.
var imageName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*[A-Za-z0-9]$`)

// WithImage returns the manifest's texts with another image in the containers, which must
// be its own. Every other byte stays: comments, order, blank lines and quotes.
func (m *Manifest) WithImage(image string, containers ...*Container) ([][]byte, error) {
	if !imageName().MatchString(image) {
		return nil, fmt.Errorf("%q is not the name of an image; write REPOSITORY:TAG", image)
	}
	out := make([][]byte, len(m.texts))
	for i, t := range m.texts {
		of := slices.DeleteFunc(slices.Clone(containers), func(c *Container) bool { return c.text != i })
		var err error
		if out[i], err = t.withImage(image, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Join makes one text of several, each with its own documents.
func Join(texts [][]byte) []byte { return bytes.Join(texts, []byte("\n---\n")) }

// formerImage is the Secrets Provider's image with a registry, a version or both. The name
// alone may also be that of a container.
var formerImage = lazyregexp.New(`^([A-Za-z0-9._:-]+/)+secrets-provider-for-k8s([:@][A-Za-z0-9._:-]*)?$|^secrets-provider-for-k8s[:@][A-Za-z0-9._:-]+$`)

// Former lists the places in objects of any kind that still name the Secrets Provider's
// image, each an *Error.
func (m *Manifest) Former() (places []error) {
	for i, t := range m.texts {
		for _, o := range t.objects {
			what := strings.Trim(o.Kind+"/"+nameIn(valueIn(o.node, "metadata")), "/")
			if what == "" {
				what = "a document without a kind, such as values of a chart"
			}
			eachScalar(o.node, func(n *yaml.Node) {
				if formerImage().MatchString(n.Value) {
					places = append(places, &Error{i, fmt.Errorf("line %d: %s still has the image %s; %s", n.Line, what, n.Value, remedy(o.Kind))})
				}
			})
		}
	}
	return places
}

// remedy says what to do with an object that has the former image outside of a Pod.
func remedy(kind string) string {
	if kind == "Kustomization" {
		return "change this entry by hand, or migrate what kustomize build prints"
	}
	return "only the containers of a Pod template are changed; change it by hand"
}

func eachScalar(node *yaml.Node, do func(*yaml.Node)) {
	if node.Kind == yaml.ScalarNode {
		do(node)
	}
	for _, n := range node.Content {
		eachScalar(n, do)
	}
}

// withImage is Manifest.WithImage for one text.
func (t text) withImage(image string, containers []*Container) ([]byte, error) {
	var spans []span
	for _, c := range containers {
		if c.image.IsZero() {
			return nil, fmt.Errorf("the container %s has no image; write one", c.Name)
		}
		s, ok := locate(t.bytes, &c.image)
		if !ok {
			return nil, fmt.Errorf("line %d: the image of the container %s spans several lines; write it on one line", c.image.Line, c.Name)
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	spans = slices.Compact(spans)

	var out []byte
	done := 0
	for _, s := range spans {
		out = append(append(out, t.bytes[done:s.start]...), image...)
		done = s.end
	}
	out = append(out, t.bytes[done:]...)
	return out, t.checkReplaced(out, image, containers)
}

// span is a part of a text, by byte offsets.
type span struct{ start, end int }

// locate finds a scalar's text, without its quotes, anchor and tag.
func locate(text []byte, node *yaml.Node) (span, bool) {
	at := offset(text, node.Line, node.Column)
	for at < len(text) && (text[at] == '&' || text[at] == '!') {
		word := bytes.IndexAny(text[at:], " \t\r\n")
		if word < 0 {
			return span{}, false
		}
		at += word + len(text[at+word:]) - len(bytes.TrimLeft(text[at+word:], " \t"))
	}
	rest := string(text[at:])
	switch {
	case node.Kind == yaml.AliasNode:
		return span{at, at + len("*") + len(node.Value)}, strings.HasPrefix(rest, "*"+node.Value)
	case node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && rest != "":
		// Ignore escapes, because no image's name needs them.
		return span{at + 1, at + 1 + len(node.Value)}, strings.HasPrefix(rest, rest[:1]+node.Value+rest[:1])
	}
	return span{at, at + len(node.Value)}, strings.HasPrefix(rest, node.Value)
}

// offset finds the byte at a line and a column, both counted from 1, the column in
// characters. It returns the text's length if the line does not exist.
func offset(text []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return len(text)
		}
		at += end + 1
	}
	for ; column > 1 && at < len(text); column-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// checkReplaced checks that only the images differ between the new text and the old.
func (t text) checkReplaced(replaced []byte, image string, containers []*Container) error {
	before := t.objects
	after, err := documents(replaced)
	if err == nil && len(before) == len(after) {
		changed := map[[2]int]string{}
		for _, c := range containers {
			changed[[2]int{c.image.Line, c.image.Column}] = image
		}
		same := true
		for i := range before {
			same = same && sameBut(before[i].node, after[i].node, changed)
		}
		if same {
			return nil
		}
	}
	return fmt.Errorf("the image cannot be replaced by %s without changing something else; replace it by hand", image)
}

// sameBut reports whether two trees are equal, except for the scalars of before whose
// position is in changed. Those must have the text given there. An anchored node may
// occur in other places too and must not change.
func sameBut(before, after *yaml.Node, changed map[[2]int]string) bool {
	image, ok := changed[[2]int{before.Line, before.Column}]
	switch {
	case before.Anchor != "":
		changed = nil
	case ok && before.Kind&(yaml.ScalarNode|yaml.AliasNode) != 0:
		return after.Kind == yaml.ScalarNode && after.Tag == "!!str" && after.Value == image
	}
	if before.Kind != after.Kind || before.Tag != after.Tag || before.Value != after.Value || len(before.Content) != len(after.Content) {
		return false
	}
	for i := range before.Content {
		if !sameBut(before.Content[i], after.Content[i], changed) {
			return false
		}
	}
	return true
}
