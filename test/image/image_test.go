//go:build long

// Package image tests the container image that "make image" writes.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/gobuild"
)

const toolsDir = "../../deploy/tools"

// inputs makes the code that the image is built from inputs of the test.
func inputs(t *testing.T) {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
}

// writeImage runs deploy/tools/image.
func writeImage(t *testing.T, out string, args ...string) error {
	t.Helper()
	inputs(t)
	cmd := exec.Command("go", append([]string{"-C", toolsDir, "run", "./image", "-out", out, "-version", "1.2.3"}, args...)...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// buildTiny builds the stand-in for Syncer.
func buildTiny(t *testing.T, architecture string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), architecture)
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", path}, args...), "./testdata/tiny")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return path
}

// wantFiles are all files of the image: type, mode, owner, and the target of a link.
var wantFiles = map[string]string{
	"bin/":                              "d 755 0:0",
	"bin/sh":                            "l 777 0:0 /syncer",
	"conjur/":                           "d 755 0:0",
	"conjur/secrets/":                   "d 775 777:0",
	"conjur/status/":                    "d 777 777:0",
	"etc/":                              "d 755 0:0",
	"etc/conjur/":                       "d 755 0:0",
	"etc/conjur/ssl/":                   "d 770 777:0",
	"etc/group":                         "f 644 0:0",
	"etc/passwd":                        "f 644 0:0",
	"etc/ssl/":                          "d 755 0:0",
	"etc/ssl/certs/":                    "d 755 0:0",
	"etc/ssl/certs/ca-certificates.crt": "f 644 0:0",
	"licenses/":                         "d 755 0:0",
	"licenses/LICENSE":                  "f 644 0:0",
	"syncer":                            "f 755 0:0",
	"tmp/":                              "d 1777 0:0",
	"usr/":                              "d 755 0:0",
	"usr/local/":                        "d 755 0:0",
	"usr/local/bin/":                    "d 755 0:0",
	"usr/local/bin/secrets-provider":    "l 777 0:0 /syncer",

	"usr/local/bin/conjur-secrets-provided.sh":  "l 777 0:0 /syncer",
	"usr/local/bin/conjur-secrets-unchanged.sh": "l 777 0:0 /syncer",
	"usr/local/bin/syncer":                      "l 777 0:0 /syncer",
}

func describe(f deploy.LayerFile) string {
	kind := map[byte]string{tar.TypeDir: "d", tar.TypeReg: "f", tar.TypeSymlink: "l"}[f.Typeflag]
	return strings.TrimSpace(fmt.Sprintf("%s %o %d:%d %s", kind, f.Mode, f.Uid, f.Gid, f.Linkname))
}

func TestImageHoldsTheBinaryOfEachPlatform(t *testing.T) {
	dir := t.TempDir()
	binaries := map[string]string{"linux/amd64": buildTiny(t, "amd64"), "linux/arm64": buildTiny(t, "arm64")}
	license, err := filepath.Abs("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-name", "example/syncer:1.2", "-license", license}
	for _, platform := range slices.Sorted(maps.Keys(binaries)) {
		args = append(args, platform+"="+binaries[platform])
	}
	paths := []string{filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")}
	for _, path := range paths {
		if err := writeImage(t, path, args...); err != nil {
			t.Fatal(err)
		}
	}
	first, second := readFile(t, paths[0]), readFile(t, paths[1])
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same binaries differ")
	}

	a := deploy.ReadArchive(t, paths[0])
	top, platforms := a.Index(t)
	if top.Annotations["io.containerd.image.name"] != "docker.io/example/syncer:1.2" || top.Annotations["org.opencontainers.image.ref.name"] != "1.2" {
		t.Errorf("the image is called %v", top.Annotations)
	}
	assertKeptFields(t, a["blobs/sha256/"+strings.TrimPrefix(top.Digest, "sha256:")])
	for _, d := range platforms {
		platform := d.Platform.OS + "/" + d.Platform.Architecture
		config, files := a.Image(t, d)
		assertConfig(t, config, platform)
		got := map[string]string{}
		for name, f := range files {
			got[name] = describe(f)
			if !f.ModTime.Equal(time.Unix(1700000000, 0)) {
				t.Errorf("%s: %s is of %v", platform, name, f.ModTime)
			}
		}
		if !maps.Equal(got, wantFiles) {
			t.Errorf("%s: files %v, want %v", platform, got, wantFiles)
		}
		if !bytes.Equal(files["syncer"].Content, readFile(t, binaries[platform])) {
			t.Errorf("%s: another binary", platform)
		}
		if !bytes.Equal(files["licenses/LICENSE"].Content, readFile(t, license)) {
			t.Errorf("%s: another license", platform)
		}
		if roots := x509.NewCertPool(); !roots.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].Content) {
			t.Errorf("%s: no certificate authorities", platform)
		}
		delete(binaries, platform)
	}
	if len(binaries) > 0 {
		t.Errorf("no image for %v", binaries)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files beside the archives, %v", len(entries), err)
	}
}

// assertKeptFields: skopeo writes the index anew when it copies all platforms. With a field
// that it does not know, such as artifactType, the copy has another digest.
func assertKeptFields(t *testing.T, index []byte) {
	t.Helper()
	var list struct{ Manifests []map[string]any }
	if err := json.Unmarshal(index, &list); err != nil || len(list.Manifests) == 0 {
		t.Fatalf("%v: %s", err, index)
	}
	for _, d := range list.Manifests {
		if got := slices.Sorted(maps.Keys(d)); !slices.Equal(got, []string{"digest", "mediaType", "platform", "size"}) {
			t.Errorf("a descriptor has the fields %q", got)
		}
	}
}

func assertConfig(t *testing.T, config deploy.ImageConfig, platform string) {
	t.Helper()
	if got := config.OS + "/" + config.Architecture; got != platform {
		t.Errorf("%s: an image for %s", platform, got)
	}
	if config.Config.User != "777:777" || !slices.Equal(config.Config.Entrypoint, []string{"/syncer"}) {
		t.Errorf("%s: runs %v as %s", platform, config.Config.Entrypoint, config.Config.User)
	}
	if !config.Created.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("%s: created %v", platform, config.Created)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != "1.2.3" {
		t.Errorf("%s: the label says version %q", platform, got)
	}
	for _, label := range []string{"title", "description", "licenses", "created"} {
		if config.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("%s: no label %s", platform, label)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestImageRefusesOtherBinaries, which could not run in the image.
func TestImageRefusesOtherBinaries(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arg, want string }{
		{"linux/arm64=" + buildTiny(t, "amd64"), "not for linux/arm64"},
		{"linux/amd64=" + script, "not a Linux executable"},
		{"linux/amd64=" + buildTiny(t, "amd64", "-buildmode=pie", "-ldflags=-linkmode=internal"), "linked dynamically"},
		{"plan9/amd64=" + script, "not a platform"},
		{script, "want one PLATFORM=FILE"},
	} {
		out := filepath.Join(dir, "out.tar")
		if err := writeImage(t, out, c.arg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.arg, err, c.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: left an archive", c.arg)
		}
	}
}

// TestImageIsNamedAsTheKubeletAsksForIt: the kubelet completes the name in a manifest.
func TestImageIsNamedAsTheKubeletAsksForIt(t *testing.T) {
	binary := buildTiny(t, "amd64")
	for name, want := range map[string]string{
		"syncer":                           "docker.io/library/syncer:latest",
		"secretsync/syncer:0.1.0":          "docker.io/secretsync/syncer:0.1.0",
		"docker.io/secretsync/syncer:1":    "docker.io/secretsync/syncer:1",
		"localhost:5000/secretsync/syncer": "localhost:5000/secretsync/syncer:latest",
		"registry.example.com/a/b:2":       "registry.example.com/a/b:2",
	} {
		inputs(t)
		path := filepath.Join(t.TempDir(), "syncer.tar")
		if err := writeImage(t, path, "-name", name, "linux/amd64="+binary); err != nil {
			t.Fatal(err)
		}
		if top, _ := deploy.ReadArchive(t, path).Index(t); top.Annotations["io.containerd.image.name"] != want {
			t.Errorf("%s is called %v, want %s", name, top.Annotations, want)
		}
	}
	if err := writeImage(t, filepath.Join(t.TempDir(), "x"), "-name", "No Image", "linux/amd64="+binary); err == nil {
		t.Error("a name that no image can have was taken")
	}
}

// TestMakeImage: the make target packs Syncer itself.
func TestMakeImage(t *testing.T) {
	inputs(t)
	path := filepath.Join(t.TempDir(), "syncer.tar")
	cmd := exec.Command("make", "-C", "../..", "image", "IMAGE_TAR="+path, "IMAGE=example/syncer:1")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	a := deploy.ReadArchive(t, path)
	_, platforms := a.Index(t)
	if _, files := a.Image(t, platforms[0]); len(files["licenses/LICENSE"].Content) == 0 {
		t.Error("no license")
	}
	if len(platforms) != 2 {
		t.Errorf("platforms %v, want two", platforms)
	}
	for _, d := range platforms {
		config, files := a.Image(t, d)
		if config.Architecture != runtime.GOARCH {
			continue
		}
		binary := filepath.Join(t.TempDir(), "syncer")
		if err := os.WriteFile(binary, files["syncer"].Content, 0o700); err != nil {
			t.Fatal(err)
		}
		text, err := exec.Command(binary, "version").CombinedOutput()
		if revision := config.Config.Labels["org.opencontainers.image.revision"]; err != nil || revision == "" || !strings.Contains(string(text), revision) {
			t.Errorf("version: %s, %v; the image's labels are %v", text, err, config.Config.Labels)
		}
		version := config.Config.Labels["org.opencontainers.image.version"]
		if version == "" || !strings.Contains(string(text), " "+version+"\n") {
			t.Errorf("the label says version %q, but the binary says %s", version, text)
		}
	}
}

// TestDockerfileMakesTheSameImage, as far as a test can see without building it: the copied
// files exist, and the process is the same.
func TestDockerfileMakesTheSameImage(t *testing.T) {
	stages := strings.Split(string(readFile(t, "../../deploy/Dockerfile")), "\nFROM ")[2:]
	if len(stages) != 2 {
		t.Fatalf("%d images, want one with a shell and one without", len(stages))
	}
	for _, stage := range stages {
		for _, line := range []string{"COPY --from=build /image /", "USER 777:777", `ENTRYPOINT ["/syncer"]`} {
			if !strings.Contains(stage, "\n"+line+"\n") {
				t.Errorf("no %q in\nFROM %s", line, stage)
			}
		}
	}
	if !strings.Contains(string(readFile(t, "../../deploy/Dockerfile")), " cp LICENSE /image/licenses/ ") {
		t.Error("no license in the images")
	}
	for _, line := range []string{"COPY --from=build /bin-of-scratch/ /bin/", "ENV PATH=/usr/local/bin:/bin"} {
		if !strings.Contains(stages[0], "\n"+line+"\n") {
			t.Errorf("no %q in the image without a shell", line)
		}
	}
	const scripts = "pkg/notify/scripts/"
	if !strings.Contains(stages[1], "COPY --chmod=755 "+scripts+" /usr/local/bin/\n") {
		t.Error("the image with a shell has no scripts in /usr/local/bin")
	}
	for _, name := range []string{"conjur-secrets-provided.sh", "conjur-secrets-unchanged.sh"} {
		if _, err := os.Stat("../../" + scripts + name); err != nil {
			t.Error(err)
		}
	}
}
