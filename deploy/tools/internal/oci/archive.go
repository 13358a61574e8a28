package oci

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteIndex writes the index under a name with a tag, as [Write] does.
func WriteIndex(path, tagged string, index v1.ImageIndex) error {
	as, err := name.NewTag(tagged)
	if err != nil {
		return err
	}
	return writeArchive(path, as, index)
}

// writeArchive writes the index, with its name, as an OCI layout in a tar
// archive; all at once, so that no half of one is ever found.
func writeArchive(path string, as name.Tag, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	oci := filepath.Join(dir, "oci")
	if err := writeLayout(oci, as, index); err != nil {
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
func writeLayout(dir string, as name.Tag, index v1.ImageIndex) error {
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		"io.containerd.image.name":          fullName(as), // what containerd calls it
		"org.opencontainers.image.ref.name": as.TagStr(),
	}
	return out.AppendIndex(index, layout.WithAnnotations(annotations))
}

// fullName returns the name with its registry, as the kubelet asks for it
// whatever the manifest leaves out.
func fullName(image name.Tag) string {
	registry := image.RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io" // which the library calls by the name of its server
	}
	return registry + "/" + image.RepositoryStr() + ":" + image.TagStr()
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
