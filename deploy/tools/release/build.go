package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// binary is syncer for one platform.
type binary struct {
	system, architecture string
	path                 string
	info                 *debug.BuildInfo
}

// name is that of the platform in names of files.
func (b binary) name() string { return b.system + "_" + b.architecture }

// build builds the binaries. What the machine or its user has set for the go command
// does not take part, except where it finds modules.
func (r *release) build(ctx context.Context, platforms []string, dir string) error {
	places, err := r.placesOfGo(ctx)
	if err := errors.Join(err, os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	for _, platform := range platforms {
		system, architecture, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("-platforms: %q is not a platform such as linux/amd64", platform)
		}
		b := binary{system: system, architecture: architecture}
		b.path = filepath.Join(dir, b.name(), "syncer")
		fmt.Fprintf(r.log, "building syncer %s for %s\n", r.version, platform)
		env := append(slices.Clone(places),
			"CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture, "GOAMD64=v1", "GOARM64=v8.0",
			"GOFLAGS=", "GOENV=off", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off",
			"GOTMPDIR="+dir, // so that nothing is left, whenever it ends
		)
		_, err := r.output(ctx, r.source, env, "go", "build", "-buildvcs=true", "-trimpath", "-ldflags=-s -w", "-o", b.path, "./cmd/syncer")
		if err != nil {
			return err
		}
		if b.info, err = buildinfo.ReadFile(b.path); err != nil {
			return err
		}
		if want := "v" + r.version; b.info.Main.Version != want {
			return fmt.Errorf("the binary for %s says that it is version %s, not %s", platform, b.info.Main.Version, want)
		}
		r.binaries = append(r.binaries, b)
	}
	return nil
}

// placesOfGo are the settings that say where the go command finds modules and caches.
// The build ignores the user's file, which may contain them.
func (r *release) placesOfGo(ctx context.Context) ([]string, error) {
	names := []string{"GOAUTH", "GOCACHE", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "GOVCS"}
	text, err := r.output(ctx, r.source, nil, "go", append([]string{"env", "-json"}, names...)...)
	if err != nil {
		return nil, err
	}
	var values map[string]string
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, err
	}
	var env []string
	if values["GOPROXY"] == "off" {
		// With "off", the version that an earlier build left in the module cache would
		// take precedence over the tag. The clone serves no module either.
		values["GOPROXY"] = (&url.URL{Scheme: "file", Path: r.source}).String()
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env, nil
}

// modules are the modules that any of the binaries links, and that of the image's
// certificate authorities, in order of their paths. One that is replaced is what
// replaces it.
func (r *release) modules() []debug.Module {
	seen := map[string]debug.Module{}
	for _, b := range r.binaries {
		for _, m := range b.modules() {
			seen[m.Path+"@"+m.Version] = m
		}
	}
	seen[r.authorities.Path] = r.authorities
	list := make([]debug.Module, 0, len(seen))
	for _, m := range seen {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b debug.Module) int { return strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version) })
	return list
}

// standardLibrary is the name of Go's standard library in a list of modules.
const standardLibrary = "std"

// modules are the modules that the binary links, Go's standard library among them.
func (b binary) modules() []debug.Module {
	list := []debug.Module{{Path: standardLibrary, Version: b.info.GoVersion}}
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, *m)
	}
	return list
}

// file is the path of an artifact.
func (r *release) file(name string) string { return filepath.Join(r.out, name) }

// write writes an artifact.
func (r *release) write(name string, content []byte) error {
	fmt.Fprintln(r.log, "writing", name)
	return os.WriteFile(r.file(name), content, 0o644)
}
