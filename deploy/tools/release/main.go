// Command release makes a release of Syncer from the present commit. docs/verify.md
// lists the artifacts and says how users check them.
//
// The same commit makes the same bytes with the same Go, and so the same SHA256SUMS.
// Only the signatures differ.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// options are what the command line says.
type options struct {
	version   string // without "v"
	repo      string // the repository's root
	out       string // the folder that is made
	key       string // the file with the private key
	platforms []string
}

func main() {
	o := options{}
	flag.StringVar(&o.version, "version", "", "the release's version, such as 0.2.0: that of Chart.yaml")
	flag.StringVar(&o.repo, "repo", ".", "the repository's root")
	flag.StringVar(&o.out, "out", "dist", "the folder that is made; it must not exist or be empty")
	flag.StringVar(&o.key, "key", "", "the file with the private key, as cosign or openssl writes it; made if it is missing")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "the platforms to build for")
	flag.Parse()
	o.platforms = strings.Split(*platforms, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release is one release while it is made.
type release struct {
	version   string
	source    string // a clone of the commit, with the release's tag
	commit    string
	committed time.Time
	out       string
	binaries  []binary
	licenses  map[debug.Module]license
	image     v1.Hash // the digest of the image for all platforms
	log       io.Writer
}

// run makes the release in a folder beside the wanted one, which thus is complete or
// does not exist.
func run(ctx context.Context, log io.Writer, o options) (err error) {
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	if list, _ := os.ReadDir(out); len(list) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder with -out", o.out)
	}
	if o.key == "" {
		return fmt.Errorf("no key: name the file with the private key with -key")
	}
	work, err := os.MkdirTemp("", "syncer-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := &release{version: o.version, source: filepath.Join(work, "source"), out: filepath.Join(work, "out"), log: log}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	if err := r.checkOut(ctx, o.repo); err != nil {
		return err
	}
	signer, err := openKey(o.key, log)
	if err != nil {
		return err
	}
	if err := r.build(ctx, o.platforms, filepath.Join(work, "bin")); err != nil {
		return err
	}
	steps := []func() error{
		r.writeNotice,
		r.writeArchives,
		r.writeBills,
		func() error { return r.writeImage(work) },
		r.writeChecksums,
		func() error { return r.sign(signer) },
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return moveFolder(r.out, out)
}

// moveFolder replaces an empty or missing folder by another one, also on another file
// system.
func moveFolder(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(filepath.Dir(to), ".release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(next) }()
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(next, os.DirFS(from)); err != nil {
		return err
	}
	_ = os.Remove(to) // only if it is empty
	return os.Rename(next, to)
}
