package world

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// Pod is a Conjur and the folders and annotations of a Pod beside it.
type Pod struct {
	*Conjur
	Dir         string
	Annotations map[string]string // without conjur.org/
}

// NewPod makes a Pod whose sidecar refreshes every second, and proves a removal
// within two polls.
func NewPod(t testing.TB, options ...conjurdtest.Option) *Pod {
	t.Helper()
	return New(t, options...).Pod(map[string]string{
		"container-mode": "sidecar", "secrets-destination": "file", "secrets-refresh-interval": "1s", "removal-grace": "0s",
	})
}

// Pod makes another Pod beside the server.
func (c *Conjur) Pod(annotations map[string]string) *Pod {
	c.Helper()
	p := &Pod{Conjur: c, Dir: c.TempDir(), Annotations: annotations}
	for _, folder := range []string{"secrets", "templates", "status", "tmp"} {
		if err := os.Mkdir(p.Path(folder), 0o755); err != nil {
			c.Fatal(err)
		}
	}
	return p
}

// Path is that of a file of the Pod.
func (p *Pod) Path(names ...string) string {
	return filepath.Join(append([]string{p.Dir}, names...)...)
}

// Group defines a secret group of variables, each with the last part of its id for
// alias.
func (p *Pod) Group(name, format string, ids ...string) {
	p.Helper()
	p.Variables(ids...)
	var list strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&list, "- %q: %q\n", filepath.Base(id), id)
	}
	p.Annotations["conjur-secrets."+name], p.Annotations["secret-file-format."+name] = list.String(), format
}

// Annotate writes the annotations as the Downward API does: whole or not at all,
// sorted by key.
func (p *Pod) Annotate() {
	p.Helper()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		fmt.Fprintf(&text, "conjur.org/%s=%q\n", key, p.Annotations[key])
	}
	Replace(p, p.Path("annotations"), text.String())
}

// Flags name the Pod's folders to Syncer.
func (p *Pod) Flags(more ...string) []string {
	return append([]string{
		"--annotations", p.Path("annotations"), "--secrets-dir", p.Path("secrets"),
		"--templates-dir", p.Path("templates"), "--status-dir", p.Path("status"),
	}, more...)
}

// Replace writes a file whole or not at all.
func Replace(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
