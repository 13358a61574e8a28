package sources_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/sources"
)

func TestAChangedInputIsSeenAndARewriteOfTheSameIsNot(t *testing.T) {
	dir := t.TempDir()
	annotations, file := filepath.Join(dir, "podinfo", "annotations"), filepath.Join(dir, "config", "syncer.yaml")
	write(t, annotations, "one")
	changes := make(chan struct{}, 100)
	in := &sources.Inputs{
		Paths: []string{annotations, file}, Interval: 10 * time.Millisecond,
		Changed: func() { changes <- struct{}{} },
		Reporter: reportFunc(func(subject string, err error) {
			if err != nil {
				t.Errorf("%s: %v", subject, err)
			}
		}),
	}
	in.Note()
	write(t, annotations, "two") // before the watch begins
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { in.Run(ctx) })
	defer wg.Wait()
	defer cancel()

	wait := func(what string) {
		t.Helper()
		select {
		case <-changes:
		case <-time.After(deadline):
			t.Fatalf("%s was not seen", what)
		}
	}
	wait("a change before the watch")
	write(t, annotations, "two") // the same again
	write(t, file, "a: 1")
	wait("a file that appeared")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wait("a file that disappeared")
	if n := len(changes); n != 0 {
		t.Errorf("%d changes too many", n)
	}
}
