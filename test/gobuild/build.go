// Package gobuild builds the programs that tests start, and tells Go's test
// cache what they are made of.
package gobuild

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Build builds a package as the file path. The package is as seen from the
// folder dir, "" for the working folder; flags are those of go build. The
// program is static, unless -race is among them.
func Build(path, dir, pkg string, flags ...string) error {
	if err := Inputs(); err != nil {
		return err
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", path}, flags, []string{pkg})...)
	cmd.Dir = dir
	if cmd.Env = os.Environ(); !slices.Contains(flags, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	} else {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Race reports whether this program was built with the race detector.
func Race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Tests runs the tests of a binary after the programs that they need were built. It is a
// goleak.TestingM.
type Tests struct {
	tests interface{ Run() int }
	build func(dir string) error
}

// Main is for TestMain: Run builds into a folder, which it removes after the tests.
func Main(tests interface{ Run() int }, build func(dir string) error) Tests {
	return Tests{tests, build}
}

// Run returns the exit code: that of the tests, or 1.
func (t Tests) Run() (code int) {
	dir, err := os.MkdirTemp("", "syncer-test-")
	if err == nil {
		if err = t.build(dir); err == nil {
			code = t.tests.Run()
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Inputs makes folders of the repository inputs of the running test; without
// any, all folders with code. Go answers a test from its cache only if no file
// that the test has opened was changed since. It does not see what another
// process opens, such as a compiler or a program that a test starts, nor what
// TestMain opens before the tests run. So a test that starts a program which
// TestMain has built calls Inputs itself. Build calls it too.
func Inputs(folders ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		folders = []string{"cmd", "config", "deploy", "go.mod", "go.sum", "internal", "keyset", "pkg", "test"}
	}
	for _, folder := range folders {
		// To read a folder is to take in its files' names, sizes and times.
		visit := func(_ string, _ fs.DirEntry, err error) error { return err }
		if err := filepath.WalkDir(filepath.Join(root, folder), visit); err != nil {
			return err
		}
	}
	return nil
}

// Root is the folder of the repository that the working folder is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(module, []byte("module github.com/secretsync/syncer\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working folder is not in Syncer's repository")
		}
		dir = filepath.Dir(dir)
	}
}
