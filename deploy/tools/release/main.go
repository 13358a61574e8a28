// Command release makes a release of Syncer from the present commit. docs/verify.md
// lists the artifacts and says how users check them.
//
// The same commit makes the same bytes with the same Go. The same key makes the same
// signatures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/secretsync/syncer/deploy/tools/internal/oci"
)

// options are what the command line says.
type options struct {
	version   string // without "v"
	repo      string // the repository's root
	out       string // the folder that is made
	key       string // the file with the private key
	platforms []string
}

// versions matches a release's version: that of Semantic Versioning, without a build,
// which the tag of an image cannot have.
var versions = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// complete checks the version and makes the paths absolute. The working folder is
// that of the tools' module, which no user sees.
func (o *options) complete() (err error) {
	if !versions.MatchString(o.version) {
		return fmt.Errorf("VERSION: %q is not a version such as 0.2.0", o.version)
	}
	if o.repo, err = filepath.Abs(o.repo); err != nil {
		return err
	}
	for _, path := range []*string{&o.out, &o.key} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(o.repo, *path)
		}
	}
	return nil
}

func main() {
	o := options{}
	flag.StringVar(&o.version, "version", "", "the release's version, such as 0.2.0: that of Chart.yaml")
	flag.StringVar(&o.repo, "repo", ".", "the repository's root")
	flag.StringVar(&o.out, "out", "dist", "the folder that is made, as seen from -repo; it must not exist or be empty")
	flag.StringVar(&o.key, "key", "", "the file with the private key, as seen from -repo; without it, the release has no signatures")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "the platforms to build for")
	flag.Parse()
	o.platforms = strings.Split(*platforms, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release is one release while it is made.
type release struct {
	version     string
	source      string // a clone of the commit, with the release's tag
	commit      string
	committed   time.Time
	out         string
	binaries    []binary
	licenses    map[debug.Module]license
	authorities debug.Module // those of the image
	images      []v1.Hash    // the digest of the image for all platforms, then of each platform's
	log         io.Writer
}

// run makes the release.
func run(ctx context.Context, log io.Writer, o options) (err error) {
	if err := o.complete(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "syncer-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := &release{version: o.version, source: filepath.Join(work, "source"), log: log}
	if r.authorities, err = oci.AuthoritiesModule(); err != nil {
		return err
	}
	if err := r.checkOut(ctx, o.repo); err != nil {
		return err
	}
	if r.out, err = claimFolder(o.out); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.out) }()
	var key *signer
	if o.key != "" {
		if key, err = openKey(o.key); err != nil {
			return err
		}
	}
	if err := r.build(ctx, o.platforms, filepath.Join(work, "bin")); err != nil {
		return err
	}
	steps := []func() error{
		r.writeNotice,
		r.writeArchives,
		r.writeBills,
		func() error { return r.writeImage(work) },
		func() error { return r.signArtifacts(key) },
		r.writeChecksums,
		func() error { return r.signChecksums(key) },
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return os.Rename(r.out, o.out)
}
