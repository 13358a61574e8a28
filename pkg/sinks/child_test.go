package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/targets"
)

// childEnv makes the test binary run one of the children below instead of the
// tests, in its working directory.
const childEnv = "SINKS_TEST_CHILD"

func TestMain(m *testing.M) {
	children := map[string]func() error{"rewrite": rewriteForever, "limited": writeBeyondLimit, "denied": writeWithoutRight, "grouped": writeForGroup}
	if child, ok := children[os.Getenv(childEnv)]; ok {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func child(t *testing.T, name, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Dir = dir
	return cmd
}

func runChild(t *testing.T, name, dir string) {
	t.Helper()
	if out, err := child(t, name, dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, bytes.TrimSpace(out))
	}
}

// A file-size limit stops a write in the middle, as a full disk does.
func TestWriteBeyondLimit(t *testing.T) {
	dir := t.TempDir()
	runChild(t, "limited", dir)
	expectTree(t, dir, "-rw------- a")
}

func writeBeyondLimit() error {
	ctx, files, target := context.Background(), newKeeper(".", nil), fileTarget("a", 0o600)
	const limit = 10_000
	old, large := rewrite(WholeFile, "old"), rewrite(WholeFile, strings.Repeat("x", 2*limit))
	if err := files.Apply(ctx, target, old); err != nil {
		return err
	}
	var free syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: free.Max}); err != nil {
		return err
	}
	if err := files.Apply(ctx, target, large); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "write the file") {
		return fmt.Errorf("beyond the limit: %w", err)
	}
	if names, err := os.ReadDir("."); err != nil || len(names) != 1 {
		return fmt.Errorf("left behind: %v, %w", names, err)
	}
	if state, err := files.Read(ctx, target); err != nil || !state.Parts[WholeFile].Equal(old.Parts[WholeFile]) {
		return fmt.Errorf("the old file is not there any more: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	return files.Apply(ctx, target, large)
}

// The child is not root, whoever runs the test.
func TestWriteWithoutRight(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	runChild(t, "denied", dir)
}

const nobody = 65534

func writeWithoutRight() error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			return err
		}
	}
	if err := os.Mkdir("secrets", 0o755); err != nil {
		return err
	}
	return errors.Join(foreignOwner(), readOnlyFolder(), unreadableFile())
}

// foreignOwner asks for an owner that the process may not give files to.
func foreignOwner() error {
	files := newKeeper("secrets", &Owner{os.Getuid() + 1, -1})
	err := files.Apply(context.Background(), fileTarget("foreign", 0o600), rewrite(WholeFile, "text"))
	left, listErr := os.ReadDir("secrets")
	if !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "set the owner") || len(left) != 0 {
		return fmt.Errorf("with a foreign owner: %v left; %v, %w", left, listErr, err)
	}
	return nil
}

func readOnlyFolder() error {
	ctx, files, target := context.Background(), newKeeper("secrets", nil), fileTarget("a", 0o600)
	change := rewrite(WholeFile, "text")
	if err := os.Chmod("secrets", 0o555); err != nil {
		return err
	}
	if err := files.Apply(ctx, target, change); !errors.Is(err, fs.ErrPermission) || err.Error() != "secrets/a: create the file: permission denied" {
		return fmt.Errorf("in a read-only folder: %w", err)
	}
	if err := os.Chmod("secrets", 0o755); err != nil {
		return err
	}
	if err := files.Apply(ctx, target, change); err != nil {
		return fmt.Errorf("in a folder that was mended: %w", err)
	}
	if err := os.Chmod("secrets", 0o555); err != nil {
		return err
	}
	if err := files.Apply(ctx, target, removal(WholeFile)); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "remove the file") {
		return fmt.Errorf("removing in a read-only folder: %w", err)
	}
	if state, err := files.Read(ctx, target); err != nil || !state.Parts[WholeFile].Equal(change.Parts[WholeFile]) {
		return fmt.Errorf("the file is not as it was: %w", err)
	}
	if err := os.Chmod("secrets", 0); err != nil {
		return err
	}
	if state, err := files.Read(ctx, target); !errors.Is(err, fs.ErrPermission) || state.Parts != nil {
		return fmt.Errorf("in a closed folder Read gives %v, %w", state, err)
	}
	return os.Chmod("secrets", 0o755)
}

// unreadableFile is one that the process may replace, but not read.
func unreadableFile() error {
	ctx, files, target := context.Background(), newKeeper("secrets", nil), fileTarget("a", 0o600)
	change := rewrite(WholeFile, "text")
	if err := os.Chmod("secrets/a", 0); err != nil {
		return err
	}
	state, err := files.Read(ctx, target)
	if _, there := state.Parts[WholeFile]; err != nil || !there || !state.Stale || state.Mode != 0 {
		return fmt.Errorf("of an unreadable file Read gives %v, %w", state, err)
	}
	if err := files.Apply(ctx, target, change); err != nil {
		return fmt.Errorf("over an unreadable file: %w", err)
	}
	if state, err = files.Read(ctx, target); err != nil || state.Stale || !state.Parts[WholeFile].Equal(change.Parts[WholeFile]) {
		return fmt.Errorf("the file was not mended: %w", err)
	}
	return nil
}

// writeForGroup is the child: it writes files and a folder for the group, and finds
// them right.
func writeForGroup() error {
	ctx, text, files := context.Background(), os.Getenv("TEXT"), newKeeper(".", nil)
	folder := directoryTarget("app", 0o640)
	folder.Key, folder.Entries = "file/app", []targets.Entry{{Alias: "user"}, {Alias: "key", Path: "tls/key", Mode: 0o440}}
	below := fileTarget("below/plain", 0o640)
	below.Key = "file/below"
	for _, target := range []*targets.Target{fileTarget("plain", 0o640), below, folder} {
		change := rewrite(WholeFile, text)
		if target == folder {
			change = rewrite("user", text, "tls/key", text)
		}
		if err := files.Apply(ctx, target, change); err != nil {
			return err
		}
		if state, err := files.Read(ctx, target); err != nil || state.Stale || state.Mode != 0o640 {
			return fmt.Errorf("%s: read back %+v, %w", target.Key, state, err)
		}
	}
	return nil
}
