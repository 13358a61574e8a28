package kube_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/kube"
)

// childEnv makes the test binary follow the Secrets of a namespace instead of
// running the tests: "KUBECONFIG NAMESPACE HEAPDUMP".
const childEnv = "KUBE_TEST_CHILD"

// watchChild follows Secrets, keeps the Sources as the product may do, and
// writes a line for each thing that it hears. On the line "dump" it collects
// garbage and dumps its live heap, on "close" it ends the watch and closes the
// connection.
func watchChild() bool {
	args := strings.Fields(os.Getenv(childEnv))
	if len(args) != 3 {
		return false
	}
	c, err := kube.Connect(kube.Config{Kubeconfig: args[0]})
	if err != nil {
		panic(err)
	}
	kept := map[string]kube.Source{}
	put := func(s kube.Source) { kept[s.Name] = s; fmt.Println(s.Map) }
	w := c.WatchSecrets(args[1], "", kube.Handler[kube.Source]{
		Replace: func(all []kube.Source) {
			for _, s := range all {
				put(s)
			}
		},
		Put: put, Delete: func(_, name string) { fmt.Println("gone", name) }, Well: func() {},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Run(ctx) }() // ends at once when it may not watch
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("done") {
		if in.Text() == "close" {
			cancel()
			<-ended
			c.Close()
		} else if err := dump(args[2]); err != nil {
			panic(err)
		}
	}
	cancel()
	<-ended
	runtime.KeepAlive(w)
	runtime.KeepAlive(kept)
	return true
}

func dump(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.GC()
	runtime.GC() // what the first one found has been swept
	debug.WriteHeapDump(f.Fd())
	return f.Close()
}

// follower is a child at work.
type follower struct {
	in   io.WriteCloser
	out  *bufio.Scanner
	heap string
}

func follow(t *testing.T, kubeconfig, namespace string) *follower {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{heap: filepath.Join(t.TempDir(), "heap")}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{kubeconfig, namespace, f.heap}, " "),
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS=1") // a timer holds on to a connection that was closed
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if f.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.out = bufio.NewScanner(out)
	t.Cleanup(func() { _ = f.in.Close(); _ = cmd.Wait() })
	return f
}

// expect reads lines until there were as many as wanted that begin thus.
func (f *follower) expect(t *testing.T, prefix string, count int) {
	t.Helper()
	for count > 0 {
		if !f.out.Scan() {
			t.Fatalf("the child ended before another %d lines %q", count, prefix)
		}
		if strings.HasPrefix(f.out.Text(), prefix) {
			count--
		}
	}
}

func (f *follower) do(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintln(f.in, command); err != nil {
		t.Fatal(err)
	}
	f.expect(t, "done", 1)
}

// holds counts how many of the texts the child's live heap holds, as they are
// or in base64.
func (f *follower) holds(t *testing.T, texts []string) (count int) {
	t.Helper()
	f.do(t, "dump")
	heap, err := os.ReadFile(f.heap)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		if bytes.Contains(heap, []byte(text)) || bytes.Contains(heap, []byte(encoded)) {
			count++
		}
	}
	return count
}

// canaries are values that are all different and are found nowhere else.
func canaries(count, size int) (values, maps []string) {
	for range count {
		values = append(values, strings.Repeat(rand.Text(), size/26))
		maps = append(maps, "map-of-"+rand.Text())
	}
	return values, maps
}

func holding(name, conjurMap, value string) *corev1.Secret {
	s := managed(name, map[string]string{"conjur-map": conjurMap, "password": value})
	s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": base64.StdEncoding.EncodeToString([]byte(value))}
	return s
}

// What the connection read last stays in its buffers until it reads more, or
// is closed. Everything else goes: of many values, few may be found while it
// is open, and nothing afterwards.
func TestNoValueStaysInMemory(t *testing.T) {
	const count, size, part, inBuffers = 50, 16_000, 1_000, 8
	for name, verbs := range map[string][]string{"watched": {"list", "watch"}, "listed": {"list"}} {
		t.Run(name, func(t *testing.T) {
			ns := cluster.Namespace(t)
			api := secrets(t, ns)
			values, maps := canaries(count, size)
			for i := range count {
				create(t, api, holding(fmt.Sprint("s", i), maps[i], values[i]))
			}
			cluster.Bind(t, ns, "app", rules("secrets", verbs...))
			f := follow(t, cluster.KubeconfigFor(t, cluster.Token(t, ns, "app")), ns)
			f.expect(t, "map-of-", count)
			if name == "watched" {
				rotated, _ := canaries(count, size)
				for i := range count {
					update(t, api, fmt.Sprint("s", i), func(s *corev1.Secret) { *s = *holding(s.Name, maps[i], rotated[i]) })
				}
				f.expect(t, "map-of-", count)
				remove(t, api, "s0")
				f.expect(t, "gone", 1)
				values = append(values, rotated...)
			}
			if n := f.holds(t, maps); n != count {
				t.Errorf("%d of %d maps are in memory: the search is worth nothing", n, count)
			}
			if n := f.holds(t, values); n > inBuffers {
				t.Errorf("%d of %d values are in memory while connected", n, len(values))
			}
			f.do(t, "close")
			for i, value := range values {
				values[i] = value[:part]
			}
			eventually(t, "no value is in memory when the connection has been closed", func() bool {
				f.do(t, "close") // a connection is closed when its last stream has ended
				return f.holds(t, values) == 0
			})
		})
	}
}
