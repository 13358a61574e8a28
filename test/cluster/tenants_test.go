//go:build long

package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
)

// chartMemory is the memory limit of the chart's container, and chartGoMemory the
// GOMEMLIMIT that goes with it.
const (
	chartMemory   = 256 << 20
	chartGoMemory = "192MiB"
)

// shipped builds syncer as it is shipped: the race detector takes memory itself.
var shipped = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "shipped")
	return path, gobuild.Build(path, "", "../../cmd/syncer", "-trimpath", "-ldflags=-s -w")
})

// attacks are Secrets of a namespace that try to use the memory of all. Each names the limit
// that an Event at the first Secret must show.
var attacks = map[string]struct {
	make  func(w *world, namespace string)
	limit string
	also  int // hostile namespaces beside the one
}{
	"references to ConfigMaps": {limit: "32 templates", make: func(w *world, namespace string) {
		for i := range 2 {
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), nil, func(s *corev1.Secret) {
				for j := range 1200 {
					s.Annotations[fmt.Sprintf("conjur.org/conjur-secrets.g%d", j)] = "- a: a"
					s.Annotations[fmt.Sprintf("conjur.org/secret-file-template-configmap.g%d", j)] = fmt.Sprintf("map-%d-%d/t", i, j)
				}
			})
		}
	}},
	"forged lists of variables": {make: func(w *world, namespace string) {
		for i := range 10 {
			ids := make([]string, 60_000)
			for j := range ids {
				ids[j] = fmt.Sprintf("v/%d", 100_000*i+j)
			}
			w.forge(namespace, fmt.Sprintf("bad-%d", i), ids)
		}
	}},
	"forged lists within the limit": {limit: "namespaceMemory", make: func(w *world, namespace string) {
		for i := range 20 {
			ids := make([]string, 7000)
			for j := range ids {
				ids[j] = fmt.Sprintf("v/%d", 100_000*i+j)
			}
			w.forge(namespace, fmt.Sprintf("bad-%d", i), ids)
		}
	}},
	"maps of 1 MiB": {limit: "262144", make: func(w *world, namespace string) {
		w.large(namespace, 60, 1<<20-1000)
	}},
	"maps within the limit": {limit: "namespaceMemory", make: func(w *world, namespace string) {
		w.large(namespace, 40, 200<<10)
	}},
	"as many namespaces as fit": {limit: "namespaceMemory", also: 8, make: func(w *world, namespace string) {
		for i := range 5 { // of which some fit
			conjurMap := map[string]string{}
			for j := range 3500 {
				conjurMap[fmt.Sprintf("k%04d", j)] = fmt.Sprintf("%s/%d", namespace, 10_000*i+j)
			}
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), conjurMap)
		}
	}},
	"many Secrets": {make: func(w *world, namespace string) {
		for i := range 1500 {
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), map[string]string{"a": "a"})
		}
	}},
	"many keys of a large variable": {limit: "1048576", make: func(w *world, namespace string) {
		w.Variables("large")
		w.Server.Set("large", strings.Repeat("x", 200<<10))
		for i := range 5 {
			conjurMap := map[string]string{}
			for j := range 2000 {
				conjurMap[fmt.Sprintf("k%d", j)] = "large"
			}
			w.secretIn(namespace, fmt.Sprintf("bad-%d", i), conjurMap)
		}
	}},
}

// TestAHostileNamespaceTakesNobodysMemory runs the real binary with the memory of the
// chart's container, in a cgroup if possible. Another namespace gets its Secrets all the
// time, also after a restart.
func TestAHostileNamespaceTakesNobodysMemory(t *testing.T) {
	program, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		t.Run(name, func(t *testing.T) {
			attack := attacks[name]
			w := newWorld(t)
			w.Variables("a", "b")
			mallory := w.join()
			hostile := []string{mallory}
			for range attack.also {
				hostile = append(hostile, w.join())
			}
			w.Env["NAMESPACE_ALLOWLIST"] = w.namespace + "," + strings.Join(hostile, ",")
			w.secret("alice", map[string]string{"a": "a"})
			p := w.startWithin(program)
			w.awaitData("alice", map[string]string{"a": w.Value["a"]})
			for _, namespace := range hostile {
				attack.make(w, namespace)
			}
			check := func(created string) {
				w.secret(created, map[string]string{"b": "b"})
				w.awaitData(created, map[string]string{"b": w.Value["b"]})
				w.polls(20)
				w.Renew("a")
				w.awaitData("alice", map[string]string{"a": w.Value["a"]})
				p.MustRun()
				peak := p.Memory("VmHWM")
				t.Logf("peak of %d MiB", peak>>20)
				if peak > chartMemory {
					t.Errorf("a peak of %d MiB, more than the chart's limit", peak>>20)
				}
			}
			check("created")
			p.Stop()
			p = w.startWithin(program)
			check("restarted")
			if attack.limit != "" {
				eventually(t, "an Event that names the limit", func() bool { return w.said(mallory, attack.limit) })
			}
			p.Stop()
		})
	}
}

// startWithin starts a program with the memory of the chart's container.
func (w *world) startWithin(program string) *proctest.Process {
	w.Helper()
	cmd := exec.Command(program, "run", "--config", w.configure(), "--annotations", filepath.Join(w.dir, "annotations"), "--status-dir", filepath.Join(w.dir, "status"))
	cmd.Env = w.Environ("GOMEMLIMIT=" + chartGoMemory)
	return proctest.StartWithin(w.TB, chartMemory, cmd)
}

// forge creates a Secret with a wildcard whose remembered variables are forged, under our
// field manager's name.
func (w *world) forge(namespace, name string, ids []string) {
	w.Helper()
	w.asSyncer(forged(namespace, name, ids))
}

func (w *world) asSyncer(s *corev1.Secret) {
	w.Helper()
	if _, err := plane.Core.Secrets(s.Namespace).Create(w.Context(), s, metav1.CreateOptions{FieldManager: "syncer"}); err != nil {
		w.Fatal(err)
	}
}

func forged(namespace, name string, ids []string) *corev1.Secret {
	text, _ := json.Marshal(ids)
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, _ = z.Write(text)
	_ = z.Close()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"conjur.org/managed-by-provider": "true"},
			Annotations: map[string]string{"conjur.org/secret-variables": base64.StdEncoding.EncodeToString(packed.Bytes())},
		},
		Data: map[string][]byte{"conjur-map": []byte(`"*": "*"`)},
	}
}

// large makes Secrets with maps of some bytes and as many keys as go.
func (w *world) large(namespace string, n, size int) {
	w.Helper()
	for i := range n {
		var text strings.Builder
		for j := 0; text.Len() < size-40; j++ {
			fmt.Fprintf(&text, "k%06d: a/%d\n", j, j)
		}
		w.secretIn(namespace, fmt.Sprintf("bad-%d", i), nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(text.String()) })
	}
}
