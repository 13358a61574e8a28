package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"time"
)

// entry is one file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// compress returns a tar archive of the entries, compressed. All have the one time
// and belong to root.
func compress(at time.Time, list []entry) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, e := range list {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), zipped.Close())
	return out.Bytes(), err
}

const readmeName = "README.md"

// relativeLink matches a link of Markdown to a file of the repository.
var relativeLink = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

// linkOut returns a page with absolute links, because its package does not contain the
// linked files. The page was in dir in the repository.
func (r *release) linkOut(page []byte, dir string) []byte {
	return relativeLink.ReplaceAllFunc(page, func(link []byte) []byte {
		part := relativeLink.FindSubmatch(link)
		return fmt.Appendf(nil, "](https://github.com/secretsync/syncer/blob/v%s/%s%s)", r.version, path.Join(dir, string(part[1])), part[2])
	})
}

// archiveName is the name of a platform's archive, without ending.
func (r *release) archiveName(b binary) string { return "syncer_" + r.version + "_" + b.name() }

// writeArchives writes one archive for each platform: the binary, the licenses, and a
// README.
func (r *release) writeArchives() error {
	for _, b := range r.binaries {
		folder := r.archiveName(b) + "/"
		var list []entry
		for _, e := range []struct {
			name string
			path string
			mode int64
		}{
			{"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644},
			{"NOTICE", r.file(noticeName), 0o644},
			{readmeName, filepath.Join(r.source, readmeName), 0o644},
			{"syncer", b.path, 0o755},
		} {
			content, err := os.ReadFile(e.path)
			if err != nil {
				return err
			}
			if e.name == readmeName {
				content = r.linkOut(content, "")
			}
			list = append(list, entry{folder + e.name, e.mode, content})
		}
		content, err := compress(r.committed, list)
		if err != nil {
			return err
		}
		if err := r.write(r.archiveName(b)+".tar.gz", content); err != nil {
			return err
		}
	}
	return nil
}
