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
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/proctest"
)

// childEnv makes the test binary follow the Secrets of a namespace instead of
// running the tests: "KUBECONFIG NAMESPACE HEAPDUMP".
const childEnv = "KUBE_TEST_CHILD"

// watchChild follows Secrets, which are kept by the informer, and writes a line
// for each thing that it hears. On the line "dump" it collects
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
	// Short, because a list replaces what an earlier one left in buffers.
	w := c.WatchSecrets(kube.Selection{Namespace: args[1], Interval: 2 * time.Second}, nil, noting[*kube.Secret]{
		put:  func(s *kube.Secret) { fmt.Println(mapOf(s)) },
		gone: func(_, name string) { fmt.Println("gone", name) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
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

// longestSlack is more than a heap dump may show of memory that belongs to no object: the
// end of a span, which the runtime keeps for the pointer bits of its objects. Only spans
// of objects up to 512 bytes have one.
const longestSlack = 512

// holds counts the values of a kind of which the child's live heap holds more than some
// bytes in a row, as they are or in base64.
func (f *follower) holds(t *testing.T, kind canary, beyond int) int {
	t.Helper()
	f.do(t, "dump")
	heap, err := os.ReadFile(f.heap)
	if err != nil {
		t.Fatal(err)
	}
	piece := len(kind) + 6
	encoded := base64.StdEncoding.EncodeToString([]byte(kind)) // begins at each third piece
	found := map[string]bool{}
	note := func(number []byte) {
		if len(bytes.Trim(number, "0123456789")) == 0 {
			found[string(number)] = true
		}
	}
	eachRow(heap, string(kind), piece, 1+beyond/piece, func(after []byte) { note(after[:6]) })
	eachRow(heap, encoded, 4*piece, 1+beyond/(4*piece), func(after []byte) {
		if number, err := base64.StdEncoding.DecodeString(string(after[:8])); err == nil {
			note(number)
		}
	})
	return len(found)
}

// eachRow calls f with what follows a prefix, wherever that occurs as often in a row as
// wanted, at a distance. A regular expression takes seconds for a large heap.
func eachRow(heap []byte, prefix string, distance, times int, f func(after []byte)) {
	for at := bytes.Index(heap, []byte(prefix)); at >= 0; at = bytes.Index(heap, []byte(prefix)) {
		heap = heap[at:]
		whole := len(heap) >= times*distance
		for n := 1; whole && n < times; n++ {
			whole = bytes.HasPrefix(heap[n*distance:], []byte(prefix))
		}
		heap = heap[len(prefix):]
		if whole {
			f(heap)
		}
	}
}

// canary is a kind of values, which are found nowhere else: how each piece of
// them begins. A number of six digits follows.
type canary string

func newCanary() canary { return canary("canary-" + rand.Text()[:17]) } // whole groups of base64

func (c canary) value(number, size int) string {
	piece := fmt.Sprintf("%s%06d", c, number)
	return strings.Repeat(piece, size/len(piece))
}

func holding(name, conjurMap, value string) *corev1.Secret {
	s := managed(name, map[string]string{"conjur-map": conjurMap, "password": value})
	s.Annotations = map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": base64.StdEncoding.EncodeToString([]byte(value)), "theirs": value,
	}
	return s
}

// What the connection read last stays in its buffers until it reads more, or
// is closed. Everything else goes: of many values, few may be found while it
// is open, however many there are, and nothing afterwards.
func TestNoValueStaysInMemory(t *testing.T) {
	t.Parallel()
	for _, count := range []int{50, 400} {
		t.Run(fmt.Sprint("watched ", count), func(t *testing.T) { noValueStays(t, count, "list", "watch") })
		t.Run(fmt.Sprint("listed ", count), func(t *testing.T) { noValueStays(t, count, "list") })
	}
}

func noValueStays(t *testing.T, count int, verbs ...string) {
	t.Parallel()
	const size, inBuffers = 16_000, 8
	ns := cluster.Namespace(t)
	api := secrets(t, ns)
	values, maps := newCanary(), newCanary()
	for i := range count {
		create(t, api, holding(fmt.Sprint("s", i), maps.value(i, 30), values.value(i, size)))
	}
	unbind := cluster.Bind(t, ns, "app", rules("secrets", verbs...))
	f := follow(t, cluster.KubeconfigFor(t, cluster.Token(t, ns, "app")), ns)
	f.expect(t, string(maps), count)
	if len(verbs) > 1 {
		for i := range count {
			update(t, api, fmt.Sprint("s", i), func(s *corev1.Secret) { *s = *holding(s.Name, maps.value(i, 30), values.value(count+i, size)) })
		}
		f.expect(t, string(maps), count)
	}
	if n := f.holds(t, maps, 0); n < count { // a piece of one may count too
		t.Errorf("%d of %d maps are in memory: the search is worth nothing", n, count)
	}
	unbind() // now lists end: on a busy machine, one would follow the other without a pause
	proctest.Eventually(t, "few values are in memory while connected", func() bool { return f.holds(t, values, longestSlack) <= inBuffers })
	proctest.Eventually(t, "no value is in memory when the connection has been closed", func() bool {
		f.do(t, "close") // a connection is closed when its last stream has ended
		return f.holds(t, values, longestSlack) == 0
	})
}
