package sinks

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/length"
)

func killTargets() []*targets.Target {
	return []*targets.Target{fileTarget("app/file", 0o640), directoryTarget("app/dir", 0o640)}
}

// rewriteForever writes both targets in turn, and one byte to standard output
// after each.
func rewriteForever() error {
	files, all := newKeeper(".", nil), killTargets()
	for i := 0; ; i++ {
		text := selfDescribing(fmt.Sprint(i), 1+i*7919%5000)
		changes := []Changes{rewrite(WholeFile, text), rewrite("user", text, "word", text)}
		if i%3 == 0 { // one part comes and goes
			changes[1] = rewrite("user", text, "word", text, "more", text)
		}
		for n, c := range changes {
			if err := files.Apply(context.Background(), all[n], c); err != nil {
				return err
			}
			if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
				return err
			}
		}
	}
}

var kills = length.Flag("kills", 200, 60, "how often the process is killed")

// Whatever moment the process is killed at, a reader finds the last write that
// was reported done or the one after it, whole, and a start finds all else
// that was left.
func TestKill(t *testing.T) {
	kills, dir := kills(), t.TempDir()
	files, all := newKeeper(dir, nil), killTargets()
	random := rand.New(rand.NewPCG(1, 2)) // of the number of writes; the moment itself is anyone's guess
	rests := 0
	for kill := range kills {
		done := killOnce(t, dir, 1+random.IntN(6), time.Duration(random.IntN(2000))*time.Microsecond)
		name, err := readWhole(filepath.Join(dir, "app/file"), 0o640)
		expectWrite(t, name, err, (done+1)/2)
		if done > 1 {
			name, err := readOneVersion(filepath.Join(dir, "app/dir"), 0o640, "user", "word")
			expectWrite(t, name, err, done/2)
		}
		rests += len(rest(t, dir))
		if err := files.Clean(t.Context(), all); err != nil {
			t.Error(err)
		}
		if left := rest(t, dir); len(left) != 0 {
			t.Errorf("after Clean there are %q", left)
		}
		if t.Failed() {
			t.Fatalf("this was kill %d", kill)
		}
	}
	if rests == 0 {
		t.Errorf("%d kills left nothing behind: they came at harmless moments", kills)
	}
}

// expectWrite wants what is read to be of the last of so many writes, or of
// the next one.
func expectWrite(t *testing.T, name string, err error, done int) {
	t.Helper()
	if err != nil || name != fmt.Sprint(done-1) && name != fmt.Sprint(done) {
		t.Errorf("after %d writes the reader finds that of %q, %v", done, name, err)
	}
}

// killOnce starts a child, kills it a moment after so many writes, and tells
// how many it has reported done.
func killOnce(t *testing.T, dir string, writes int, moment time.Duration) int {
	t.Helper()
	cmd := child(t, "rewrite", dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, writes)); err != nil {
		t.Errorf("the child ended early: %v: %s", err, stderr.String())
	}
	timer := time.AfterFunc(moment, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	more, _ := io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v: %s", cmd.ProcessState, stderr.String())
	}
	return writes + int(more)
}

// rest lists temporary files and versions that are not current.
func rest(t *testing.T, dir string) []string {
	t.Helper()
	current, _ := os.Readlink(filepath.Join(dir, "app/dir/..data"))
	var names []string
	for _, folder := range []string{"app", "app/dir"} {
		entries, _ := os.ReadDir(filepath.Join(dir, folder))
		for _, e := range entries {
			if safefile.IsTempName(e.Name()) || isVersion(e.Name()) && e.Name() != current {
				names = append(names, e.Name())
			}
		}
	}
	return names
}
