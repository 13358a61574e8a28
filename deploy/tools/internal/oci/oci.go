// Package oci writes Syncer's container image, for several platforms at once,
// as an OCI layout in a tar archive. It needs no container engine: the image holds the
// static binary, a user, a few folders, and Mozilla's certificate authorities. The same
// binaries make the same bytes.
package oci

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Options say which image is written, and where to.
type Options struct {
	Out      string   // the archive
	Name     string   // of the image, with its tag
	Version  string   // of Syncer, such as 0.2.0
	Binaries []string // PLATFORM=FILE each
	Licenses []string // files for the image's folder /licenses
	Epoch    string   // SOURCE_DATE_EPOCH; "" is the time of the binaries' commit
}

// Write makes the archive and prints the image's digest. It returns that of the image
// for all platforms, and then that of each platform.
func Write(w io.Writer, o Options) (digests []v1.Hash, err error) {
	as, err := name.NewTag(o.Name)
	if err != nil {
		return nil, err
	}
	if o.Version == "" {
		return nil, errors.New("no version: give Syncer's version, such as 0.2.0, with -version")
	}
	binaries, err := openBinaries(o.Binaries)
	if err != nil {
		return nil, err
	}
	created, err := creationTime(o.Epoch, binaries)
	if err != nil {
		return nil, err
	}
	licenses, err := readLicenses(o.Licenses)
	if err != nil {
		return nil, err
	}
	index, err := imageIndex(binaries, licenses, o.Version, created)
	if err != nil {
		return nil, err
	}
	if err := writeArchive(o.Out, func(out layout.Path) error { return out.AppendIndex(index, called(as)) }); err != nil {
		return nil, err
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	digests = []v1.Hash{digest}
	for _, m := range list.Manifests {
		digests = append(digests, m.Digest)
	}
	fmt.Fprintf(w, "%s: %s %s\n", o.Out, fullName(as), digest)
	return digests, nil
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
