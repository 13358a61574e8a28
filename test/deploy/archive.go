package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// Archive is an OCI image layout in a tar archive, read without the library
// that wrote it; see the OCI image specification.
type Archive map[string][]byte

// Descriptor points to a blob.
type Descriptor struct {
	MediaType   string
	Digest      string
	Size        int
	Annotations map[string]string
	Platform    struct{ OS, Architecture string }
}

// ImageConfig is what an image says of itself.
type ImageConfig struct {
	OS, Architecture string
	Created          time.Time
	Config           struct {
		User       string
		Entrypoint []string
		Env        []string
		Labels     map[string]string
	}
	RootFS struct {
		Type    string
		DiffIDs []string `json:"diff_ids"`
	}
}

// LayerFile is one entry of a layer.
type LayerFile struct {
	tar.Header
	Content []byte
}

// ReadArchive reads the archive at path.
func ReadArchive(t testing.TB, path string) Archive {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := Archive{}
	for _, f := range readTar(t, bytes.NewReader(text)) {
		a[f.Name] = f.Content
	}
	return a
}

func readTar(t testing.TB, r io.Reader) (files []LayerFile) {
	t.Helper()
	in := tar.NewReader(r)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, LayerFile{*header, content})
	}
}

// blob is what a descriptor points to, with its size and digest checked.
func (a Archive) blob(t testing.TB, d Descriptor) []byte {
	t.Helper()
	content, ok := a["blobs/sha256/"+d.Digest[len("sha256:"):]]
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); !ok || len(content) != d.Size || sum != d.Digest {
		t.Fatalf("blob %s: there %v, %d bytes with sum %s", d.Digest, ok, len(content), sum)
	}
	return content
}

func (a Archive) decode(t testing.TB, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// Index is the one image of the layout, which has one descriptor a platform.
func (a Archive) Index(t testing.TB) (top Descriptor, platforms []Descriptor) {
	t.Helper()
	var list struct{ Manifests []Descriptor }
	a.decode(t, a["index.json"], &list)
	if len(list.Manifests) != 1 {
		t.Fatalf("%d images, want one", len(list.Manifests))
	}
	top = list.Manifests[0]
	a.decode(t, a.blob(t, top), &list)
	return top, list.Manifests
}

// Image is one platform's: what it says of itself, and its files by name.
func (a Archive) Image(t testing.TB, d Descriptor) (config ImageConfig, files map[string]LayerFile) {
	t.Helper()
	var manifest struct {
		Config Descriptor
		Layers []Descriptor
	}
	a.decode(t, a.blob(t, d), &manifest)
	a.decode(t, a.blob(t, manifest.Config), &config)
	if len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 {
		t.Fatalf("layers %v, want one", manifest.Layers)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(a.blob(t, manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); sum != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer's sum is %s, not %s", sum, config.RootFS.DiffIDs[0])
	}
	if config.RootFS.Type != "layers" {
		t.Errorf("the root file system is of the type %q", config.RootFS.Type)
	}
	files = map[string]LayerFile{}
	for _, f := range readTar(t, bytes.NewReader(content)) {
		files[f.Name] = f
	}
	return config, files
}
