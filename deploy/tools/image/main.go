// Command image writes Syncer's container image, for several platforms at
// once, as an OCI layout in a tar archive. It needs no container engine: the
// static binary is all that is in the image, besides a user and a few folders.
// The same binaries make the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// options are what the command line says.
type options struct {
	out          string
	name         string
	certificates string
	binaries     []string // PLATFORM=FILE each
	epoch        string   // the environment's SOURCE_DATE_EPOCH
}

func main() {
	o := options{epoch: os.Getenv("SOURCE_DATE_EPOCH")}
	flag.StringVar(&o.out, "out", "syncer.tar", "the archive to write")
	flag.StringVar(&o.name, "name", "secretsync/syncer", "the image's name and tag")
	flag.StringVar(&o.certificates, "certificates", "", "a PEM file with the authorities that the image trusts (default none)")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: image [flags] linux/amd64=FILE linux/arm64=FILE …")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.binaries = flag.Args()
	if err := write(os.Stdout, o); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// write makes the archive and lists each platform's image.
func write(w io.Writer, o options) error {
	as, err := name.NewTag(o.name)
	if err != nil {
		return err
	}
	binaries, err := openBinaries(o.binaries)
	if err != nil {
		return err
	}
	created, err := creationTime(o.epoch, binaries)
	if err != nil {
		return err
	}
	var certificates []byte
	if o.certificates != "" {
		if certificates, err = os.ReadFile(o.certificates); err != nil {
			return err
		}
	}
	index, err := imageIndex(binaries, certificates, created)
	if err != nil {
		return err
	}
	if err := writeArchive(o.out, as, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s %s\n", o.out, fullName(as), digest)
	for _, b := range binaries {
		fmt.Fprintf(w, "  %s %s\n", b.platform, b.version)
	}
	return nil
}

// openBinaries reads PLATFORM=FILE arguments.
func openBinaries(args []string) (binaries []*binary, err error) {
	if len(args) == 0 {
		return nil, errors.New("no binary; give one as linux/amd64=FILE for each platform")
	}
	seen := map[string]bool{}
	for _, arg := range args {
		platform, path, ok := strings.Cut(arg, "=")
		if !ok || seen[platform] {
			err = errors.Join(err, fmt.Errorf("%s: want one PLATFORM=FILE for each platform", arg))
			continue
		}
		seen[platform] = true
		b, openErr := openBinary(platform, path)
		binaries, err = append(binaries, b), errors.Join(err, openErr)
	}
	return binaries, err
}

// creationTime returns SOURCE_DATE_EPOCH, as reproducible-builds.org defines it, or
// else the time of the commit of the binaries, or else the epoch. It never returns
// the current time.
func creationTime(epoch string, binaries []*binary) (time.Time, error) {
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds", epoch)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	for _, b := range binaries {
		if !b.committed.IsZero() {
			return b.committed, nil
		}
	}
	return time.Unix(0, 0).UTC(), nil
}
