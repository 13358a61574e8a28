package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes the index, named as name says, as an OCI layout in a tar
// archive; all at once, so that no half of one is ever found.
func writeArchive(path, name string, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	oci := filepath.Join(dir, "oci")
	if err := writeLayout(oci, name, index); err != nil {
		return err
	}
	list, err := readEntries(os.DirFS(oci))
	if err != nil {
		return err
	}
	next, err := os.Create(filepath.Join(dir, "archive"))
	if err != nil {
		return err
	}
	if err := errors.Join(writeTar(next, time.Unix(0, 0), list), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// writeLayout writes a layout whose only entry is the index.
func writeLayout(dir, name string, index v1.ImageIndex) error {
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		"io.containerd.image.name":          name, // what containerd calls it
		"org.opencontainers.image.ref.name": tag(name),
	}
	return out.AppendIndex(index, layout.WithAnnotations(annotations))
}

// tag is what follows the name of the image, if anything does.
func tag(name string) string {
	base := name[strings.LastIndex(name, "/")+1:]
	if _, tag, ok := strings.Cut(base, ":"); ok {
		return tag
	}
	return "latest"
}

// readEntries reads a folder's files and folders, in lexical order.
func readEntries(dir fs.FS) (list []tarEntry, err error) {
	err = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			list = append(list, folder(name, 0o755, root, root))
			return nil
		}
		content, err := fs.ReadFile(dir, name)
		list = append(list, file(name, 0o644, content))
		return err
	})
	return list, err
}
