package home

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// lines passes on what is written.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// A second server of a folder is refused. The server ends when another data file takes
// the place of its own.
func TestAFolderHasOneServer(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Addr: "127.0.0.1:0"}
	if err := Init(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, dataFile)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, done := make(lines, 100), make(chan error, 1)
	go func() { done <- Serve(ctx, o, out) }()
	for line := ""; !strings.Contains(line, "listens on"); line = <-out {
	}
	if err := Serve(ctx, o, io.Discard); !errors.Is(err, conjurd.ErrInUse) || !strings.Contains(err.Error(), "folder "+dir) {
		t.Errorf("a second server: %v", err)
	}
	if err := Init(ctx, o, io.Discard); !errors.Is(err, conjurd.ErrInUse) {
		t.Errorf("init: %v", err)
	}
	text, err := os.ReadFile(data)
	if err == nil {
		err = errors.Join(os.WriteFile(data+".copy", text, 0o600), os.Rename(data+".copy", data))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, conjurd.ErrReplaced) || !strings.Contains(err.Error(), data) {
		t.Errorf("the first server: %v", err)
	}
	if err := Init(ctx, o, io.Discard); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
