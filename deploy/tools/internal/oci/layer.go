package oci

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// uid is the user and the group that the image runs as. They are those of the
// Secrets Provider's image, so that files of mode 0600 and 0640 stay readable.
const uid = 777

// root is the group of the folders that are written to. OpenShift runs a
// container as a user of its choice in this group.
const root = 0

const passwd = "root:x:0:0:root:/:/sbin/nologin\nsyncer:x:777:777:Syncer:/:/sbin/nologin\n"
const group = "root:x:0:\nsyncer:x:777:\n"

// entries are all that is in the image, parents first.
func entries(executable []byte, licenses []tarEntry) []tarEntry {
	return append([]tarEntry{
		folder("bin", 0o755, root, root),
		// For Conjur's authn-k8s; no shell.
		link("bin/sh", "/syncer"),
		folder("conjur", 0o755, root, root),
		folder("conjur/secrets", 0o775, uid, root),
		folder("conjur/status", 0o777, uid, root), // the application's probe writes here too
		folder("etc", 0o755, root, root),
		folder("etc/conjur", 0o755, root, root),
		folder("etc/conjur/ssl", 0o770, uid, root),
		file("etc/group", 0o644, []byte(group)),
		file("etc/passwd", 0o644, []byte(passwd)),
		folder("etc/ssl", 0o755, root, root),
		folder("etc/ssl/certs", 0o755, root, root),
		file(AuthoritiesPath, 0o644, Authorities()),
		file("syncer", 0o755, executable),
		folder("tmp", 0o1777, root, root),
		folder("usr", 0o755, root, root),
		folder("usr/local", 0o755, root, root),
		folder("usr/local/bin", 0o755, root, root),
		// For commands and hooks that name the Secrets Provider's.
		link("usr/local/bin/conjur-secrets-provided.sh", "/syncer"),
		link("usr/local/bin/conjur-secrets-unchanged.sh", "/syncer"),
		link("usr/local/bin/secrets-provider", "/syncer"),
		link("usr/local/bin/syncer", "/syncer"),
	}, licenses...)
}

// readLicenses reads the files for the folder in which scanners look for licenses.
func readLicenses(paths []string) ([]tarEntry, error) {
	list := []tarEntry{folder("licenses", 0o755, root, root)}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list = append(list, file("licenses/"+filepath.Base(path), 0o644, content))
	}
	return list, nil
}

// tarEntry is one file, folder or link.
type tarEntry struct {
	header  tar.Header
	content []byte
}

func folder(name string, mode int64, uid, gid int) tarEntry {
	return tarEntry{header: tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Uid: uid, Gid: gid}}
}

// file is root's, so that the process cannot change it.
func file(name string, mode int64, content []byte) tarEntry {
	return tarEntry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content}
}

func link(name, target string) tarEntry {
	return tarEntry{header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}}
}

// writeTar writes the entries, each with the one time.
func writeTar(w io.Writer, at time.Time, list []tarEntry) error {
	out := tar.NewWriter(w)
	for _, e := range list {
		e.header.ModTime = at
		e.header.Format = tar.FormatUSTAR
		if err := out.WriteHeader(&e.header); err != nil {
			return err
		}
		if _, err := out.Write(e.content); err != nil {
			return err
		}
	}
	return out.Close()
}

// layer is the one layer of a platform's image.
func layer(b *binary, licenses []tarEntry, created time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, created, entries(b.content, licenses)); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
