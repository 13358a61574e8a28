package removal

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// destination is where the targets of a world are written.
type destination interface {
	// targets returns two targets: the first with the variables lost and kept, the second with
	// the others.
	targets(lost, kept string, others []string) []*targets.Target
	sink() workers.Sink
	// look returns everything that exists at the destination, by name.
	look() map[string]sight
	// holding returns the names, as in look, that contain the value of a variable of the first
	// target.
	holding(lost string) []string
	// clear deletes everything that was delivered.
	clear()
}

// sight is the observed state of a file or data key.
type sight struct {
	content string
	stamp   string // differs after each write
}

func entries(ids ...string) (list []targets.Entry) {
	for _, id := range ids {
		list = append(list, targets.Entry{Alias: alias(id), Variable: id})
	}
	return list
}

// alias is a valid data key of a Secret for a variable.
func alias(id string) string {
	return strings.Map(func(r rune) rune {
		if r == ',' || r == ' ' {
			return '-'
		}
		return r
	}, filepath.Base(id))
}

// files are two files. A file is delivered or removed as a whole.
type files struct {
	t   testing.TB
	dir string
}

func newFiles(t testing.TB) destination { return &files{t, t.TempDir()} }

func (f *files) targets(lost, kept string, others []string) []*targets.Target {
	return []*targets.Target{f.target("first", lost, kept), f.target("second", others...)}
}

func (f *files) target(name string, ids ...string) *targets.Target {
	return &targets.Target{
		Key: targets.FileKey(name), Group: name, Format: targets.FormatJSON, Entries: entries(ids...),
		File: targets.File{Path: name + ".json", Mode: 0o640},
	}
}

func (f *files) sink() workers.Sink { return sinks.NewFiles(f.dir, nil) }

func (f *files) holding(string) []string { return []string{"first.json"} }

func (f *files) clear() {
	for _, name := range []string{"first.json", "second.json"} {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *files) look() map[string]sight {
	seen := map[string]sight{}
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		seen[d.Name()] = sight{
			content: string(content),
			stamp:   fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino, info.ModTime(), info.Mode()),
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return seen
}

// kubeSecrets are two Secrets. A removal deletes from the first Secret exactly the key of
// the lost variable and the group with it. Another client's key is in that Secret too.
type kubeSecrets struct {
	t         testing.TB
	secrets   corev1client.SecretsGetter
	namespace string
}

const foreign = "foreign"

func newKubeSecrets(t testing.TB) destination {
	t.Helper()
	cp := controlPlane(t)
	core, err := corev1client.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	k := &kubeSecrets{t, core, cp.Namespace(t)}
	k.create()
	return k
}

func (k *kubeSecrets) create() {
	k.t.Helper()
	for _, name := range []string{"first", "second"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{foreign: []byte(name)}}
		if _, err := k.secrets.Secrets(k.namespace).Create(k.t.Context(), secret, metav1.CreateOptions{}); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *kubeSecrets) clear() {
	k.t.Helper()
	for _, name := range []string{"first", "second"} {
		if err := k.secrets.Secrets(k.namespace).Delete(k.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			k.t.Fatal(err)
		}
	}
	k.create()
}

func (k *kubeSecrets) targets(lost, kept string, others []string) []*targets.Target {
	group := func(name string, ids ...string) *targets.Target {
		return &targets.Target{Group: name, Format: targets.FormatJSON, Entries: entries(ids...)}
	}
	return []*targets.Target{
		{Key: targets.KubeSecretKey(k.namespace, "first"), Entries: entries(lost, kept), Secret: &targets.Secret{
			Namespace: k.namespace, Name: "first", Groups: []*targets.Target{group("both", lost, kept), group("one", kept)},
		}},
		{Key: targets.KubeSecretKey(k.namespace, "second"), Entries: entries(others...), Secret: &targets.Secret{
			Namespace: k.namespace, Name: "second",
		}},
	}
}

func (k *kubeSecrets) sink() workers.Sink { return kubesecrets.New(k.secrets) }

func (k *kubeSecrets) holding(lost string) []string {
	return []string{"first: both", "first: " + alias(lost)}
}

func (k *kubeSecrets) look() map[string]sight {
	k.t.Helper()
	list, err := k.secrets.Secrets(k.namespace).List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	seen := map[string]sight{}
	for _, s := range list.Items {
		for key, value := range s.Data {
			seen[s.Name+": "+key] = sight{content: string(value), stamp: s.ResourceVersion}
		}
	}
	return seen
}

// without returns the observed contents, except those of some names.
func without(seen map[string]sight, names []string) map[string]string {
	rest := map[string]string{}
	for name, s := range seen {
		if !slices.Contains(names, name) {
			rest[name] = s.content
		}
	}
	return rest
}

func contents(seen map[string]sight) map[string]string { return without(seen, nil) }

// differ describes the difference of two observations without a value.
func differ(got, want map[string]string) string {
	missing := slices.Sorted(maps.Keys(want))
	missing = slices.DeleteFunc(missing, func(name string) bool { _, ok := got[name]; return ok })
	var extra, other []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		content, ok := want[name]
		switch {
		case !ok:
			extra = append(extra, name)
		case content != got[name]:
			other = append(other, name)
		}
	}
	if len(missing)+len(extra)+len(other) == 0 {
		return ""
	}
	return fmt.Sprintf("missing %q, too much %q, of other content %q", missing, extra, other)
}
