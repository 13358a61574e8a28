package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/licenseclassifier/v2/assets"
)

// noticeName is the file with the licenses of all linked modules.
const noticeName = "NOTICE"

// licenseFile matches the files of a module that its license demands to be passed on.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([.-].*)?$`)

// license is what one module says about its license.
type license struct {
	ids   []string // as SPDX names them, in order
	texts []string // of its files, in order of their names
}

// readLicenses reads the licenses of the modules, and of Go's standard library, from the
// module cache and Go's own folder. A module without a license is an error: it must
// not be passed on.
func (r *release) readLicenses() (map[debug.Module]license, error) {
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		return nil, err
	}
	list := map[debug.Module]license{}
	for _, m := range r.modules() {
		dir, err := r.moduleDir(m)
		if err != nil {
			return nil, err
		}
		l, err := readLicense(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		for _, text := range l.texts {
			for _, match := range classifier.Match([]byte(text)).Matches {
				if match.MatchType == "License" && !slices.Contains(l.ids, match.Name) {
					l.ids = append(l.ids, match.Name)
				}
			}
		}
		if len(l.ids) == 0 {
			return nil, fmt.Errorf("%s: its license is not a known one: look at %s", m.Path, dir)
		}
		slices.Sort(l.ids)
		list[m] = l
	}
	return list, nil
}

// moduleDir is the folder with a module's source.
func (r *release) moduleDir(m debug.Module) (string, error) {
	if m.Path == standardLibrary {
		return r.output(context.Background(), r.source, nil, "go", "env", "GOROOT")
	}
	// The checksum of the authorities' module is in the go.sum of the tools. Without one, Go
	// would ask the checksum database.
	dir := r.source
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return "", err
	}
	if !bytes.Contains(sums, []byte(m.Path+" "+m.Version+" ")) {
		dir = filepath.Join(dir, "deploy", "tools")
	}
	text, err := r.output(context.Background(), dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "go", "mod", "download", "-json", m.Path+"@"+m.Version)
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	err = json.Unmarshal([]byte(text), &module)
	return module.Dir, err
}

// readLicense reads the license files at the top of a folder.
func readLicense(dir string) (l license, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	for _, f := range list {
		if f.IsDir() || !licenseFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return l, err
		}
		l.texts = append(l.texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(l.texts) == 0 {
		return l, fmt.Errorf("no license in %s", dir)
	}
	return l, nil
}

// writeNotice writes the licenses of all modules. Modules with the same text
// share it.
func (r *release) writeNotice() error {
	licenses, err := r.readLicenses()
	if err != nil {
		return err
	}
	r.licenses = licenses
	var out bytes.Buffer
	fmt.Fprintf(&out, "Syncer %s\n\nThe binaries and the image contain these modules; std is Go's standard library:\n\n", r.version)
	users := map[string][]string{}
	var texts []string
	for _, m := range r.modules() {
		name := m.Path + " " + m.Version
		fmt.Fprintf(&out, "- %s: %s\n", name, strings.Join(licenses[m].ids, ", "))
		text := strings.Join(licenses[m].texts, "\n\n")
		if users[text] == nil {
			texts = append(texts, text)
		}
		users[text] = append(users[text], name)
	}
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	return r.write(noticeName, out.Bytes())
}
