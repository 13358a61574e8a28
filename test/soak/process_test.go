package soak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a syncer that was started.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  output // standard output and error
	done chan struct{}
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// economy has the collector run whenever a tenth has been added to what is
// alive, instead of as much again. What the heap takes then follows what is
// alive, so that a small leak is seen early.
const economy = "GOGC=10"

// spawn starts syncer, and kills it when the test ends before it does.
func spawn(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(env, economy, "GOMAXPROCS=2")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // stop tells
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		log := p.out.String()
		if t.Failed() {
			t.Logf("the last of the output of process %d:\n%s", p.cmd.Process.Pid, log[max(0, len(log)-20_000):])
		}
	})
	return p
}

// stop ends the process as Kubernetes does, and reads its output.
func (p *process) stop() {
	p.t.Helper()
	select {
	case <-p.done:
		p.t.Fatalf("the process has ended: %v", p.cmd.ProcessState)
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("the process goes on %v after SIGTERM", patience)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("after SIGTERM the process ended with status %d", code)
	}
	log := p.out.String()
	if found := leak(log); found != "" {
		p.t.Errorf("a value is in the output: %s", found)
	}
	if strings.Contains(log, "panic:") || strings.Contains(log, "goroutine ") {
		p.t.Error("the process panicked")
	}
}

// marker begins each value of a variable.
const marker = "canary-value-"

// leak finds a value, or its base64 or hexadecimal form, in a text.
func leak(text string) string {
	forms := []string{marker, hex.EncodeToString([]byte(marker))}
	for before := range 3 { // bytes that share the encoding's groups of three
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("?", before) + marker))
		first, end := (8*before+5)/6, 8*(before+len(marker))/6
		forms = append(forms, encoded[first:end])
	}
	for _, form := range forms {
		if at := strings.Index(text, form); at >= 0 {
			return text[at:min(at+len(form)+10, len(text))]
		}
	}
	return ""
}

func TestLeakIsFound(t *testing.T) {
	value := marker + "ABCDEF"
	for _, text := range []string{
		value,
		hex.EncodeToString([]byte("=" + value)),
		base64.StdEncoding.EncodeToString([]byte(value)),
		base64.StdEncoding.EncodeToString([]byte("a" + value)),
		base64.StdEncoding.EncodeToString([]byte("ab" + value + "c")),
	} {
		if leak("before "+text+" after") == "" {
			t.Errorf("the value is not found in %q", text)
		}
	}
	if found := leak("a canary, a value, and no more"); found != "" {
		t.Errorf("found %q where no value is", found)
	}
}
