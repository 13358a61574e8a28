//go:build linux && long

package samples

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/gobuild"
)

// image is the file system of a container at its start.
type image struct {
	dir    string // where buildImage left it
	binary string // a copy of /syncer, which root folders link to
	read   sync.Once
	config deploy.ImageConfig
	files  map[string]deploy.LayerFile
}

// buildImage builds Syncer's image, as it is shipped.
func buildImage(dir string) (*image, error) {
	binary := filepath.Join(dir, "syncer")
	tool := filepath.Join(dir, "image")
	if err := errors.Join(gobuild.Build(binary, "", "../../cmd/syncer", "-trimpath"), gobuild.Build(tool, "../../deploy/tools", "./image")); err != nil {
		return nil, err
	}
	write := exec.Command(tool, "-version", "0.0.0", "-out", filepath.Join(dir, "image.tar"), "linux/"+runtime.GOARCH+"="+binary)
	if out, err := write.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("writing the image: %w\n%s", err, out)
	}
	return &image{dir: dir, binary: binary}, nil
}

// open reads the image, once for all tests.
func (i *image) open(t testing.TB) *image {
	t.Helper()
	i.read.Do(func() {
		archive := deploy.ReadArchive(t, filepath.Join(i.dir, "image.tar"))
		_, platforms := archive.Index(t)
		i.config, i.files = archive.Image(t, platforms[0])
	})
	return i
}

// unpack makes a root folder with the image's files.
func (i *image) unpack(root string) (err error) {
	for name, f := range i.files {
		path := filepath.Join(root, name)
		made := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case f.Typeflag == tar.TypeSymlink:
			err = errors.Join(err, made, os.Symlink(f.Linkname, path))
			continue
		case f.Typeflag == tar.TypeDir:
			made = errors.Join(made, os.MkdirAll(path, 0o755), os.Chown(path, f.Uid, f.Gid), chmod(path, f))
		case name == "syncer":
			made = errors.Join(made, os.Link(i.binary, path))
		default:
			made = errors.Join(made, os.WriteFile(path, f.Content, 0o600), os.Chown(path, f.Uid, f.Gid), chmod(path, f))
		}
		err = errors.Join(err, made)
	}
	return err
}

// chmod sets the mode that the image has, whatever the umask.
func chmod(path string, f deploy.LayerFile) error {
	mode := f.FileInfo().Mode()
	return os.Chmod(path, mode.Perm()|mode&fs.ModeSticky)
}
