//go:build node

package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/secretsync/syncer/test/gobuild"
)

// Images of the tests, by the names that the kubelet looks for.
const (
	pauseImage = "syncer.test/pause:1"
	appImage   = "syncer.test/app:1" // /app and nothing else
	shellImage = "syncer.test/sh:1"  // /app and a shell
)

// writeImages writes the archives that the node imports at its start.
func writeImages(dir string) error {
	app := filepath.Join(dir, "app")
	if err := gobuild.Build(app, "", "./app", "-trimpath"); err != nil {
		return err
	}
	shell := map[string]string{"app": app, "bin/busybox": "/bin/busybox"}
	for _, name := range []string{"sh", "cat", "sleep", "rm", "mkdir", "mv", "ls", "test", "[", "touch", "date", "echo", "true", "find", "cp", "printf"} {
		shell["bin/"+name] = "-> busybox"
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(dir, "images"), 0o755),
		writeImage(filepath.Join(dir, "images", "pause.tar"), pauseImage, "/pause", map[string]string{"pause": app}),
		writeImage(filepath.Join(dir, "images", "app.tar"), appImage, "/app", map[string]string{"app": app}),
		writeImage(filepath.Join(dir, "images", "sh.tar"), shellImage, "/app", shell),
	)
}

// writeImage writes an image of one layer, as "docker save" does. The files are
// named in the image and on the machine, or "-> " and where a link leads.
func writeImage(path, name, entrypoint string, files map[string]string) error {
	var layer bytes.Buffer
	out := tar.NewWriter(&layer)
	err := errors.Join(
		out.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}),
		out.WriteHeader(&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}),
	)
	for file, source := range files {
		if target, link := strings.CutPrefix(source, "-> "); link {
			err = errors.Join(err, out.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}))
			continue
		}
		content, read := os.ReadFile(source)
		err = errors.Join(err, read, add(out, file, content, 0o755))
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{entrypoint}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	out = tar.NewWriter(&archive)
	err = errors.Join(add(out, "manifest.json", manifest, 0o644), add(out, "config.json", config, 0o644),
		add(out, "layer.tar", layer.Bytes(), 0o644), out.Close())
	return errors.Join(err, os.WriteFile(path, archive.Bytes(), 0o600))
}

func add(out *tar.Writer, name string, content []byte, mode int64) error {
	err := out.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))})
	if err == nil {
		_, err = out.Write(content)
	}
	return err
}

// loadImage gives the node Syncer's image by the command that docs/install.md
// names, word for word.
func loadImage() error {
	root, err := gobuild.Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "ctr ") {
			continue
		}
		load := exec.Command("sh", "-c", line)
		load.Dir = testDir
		load.Env = append(os.Environ(), "CONTAINERD_ADDRESS="+filepath.Join(testDir, "s", "node", "containerd.sock"))
		if out, err := load.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, out)
		}
		return nil
	}
	return errors.New("docs/install.md has no command that begins with ctr")
}

// architecture is the part of the image that the node runs.
const architecture = runtime.GOARCH
