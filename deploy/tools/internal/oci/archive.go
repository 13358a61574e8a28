package oci

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteImages writes images of a repository, by their tags, as one OCI layout in a tar
// archive.
func WriteImages(path, repository string, images map[string]v1.Image) error {
	return writeArchive(path, func(out layout.Path) error {
		for _, tag := range slices.Sorted(maps.Keys(images)) {
			as, err := name.NewTag(repository + ":" + tag)
			if err != nil {
				return err
			}
			if err := out.AppendImage(images[tag], called(as)); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeArchive writes an OCI layout in a tar archive; all at once, so that no half of
// one is ever found.
func writeArchive(path string, fill func(layout.Path) error) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	oci := filepath.Join(dir, "oci")
	out, err := layout.Write(oci, empty.Index)
	if err != nil {
		return err
	}
	if err := fill(out); err != nil {
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

// called gives an entry of a layout its name.
func called(as name.Tag) layout.Option {
	return layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          fullName(as), // what containerd calls it
		"org.opencontainers.image.ref.name": as.TagStr(),
	})
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
