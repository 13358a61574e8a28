package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/secretsync/syncer/pkg/manifest"
	"github.com/secretsync/syncer/pkg/targets"
)

// templateTexts gives the text of the template of a target, or of a Secret's
// group; "" for one without.
type templateTexts func(*targets.Target) (string, error)

// errUnknownTemplate says that a template is not among what the tool was given.
var errUnknownTemplate = errors.New("not known here")

// folderTemplates reads templates from a folder as it is mounted in a Pod. A
// template in a ConfigMap is the file NAME/KEY in it.
func folderTemplates(dir fs.FS) templateTexts {
	return func(t *targets.Target) (string, error) {
		name, place := t.Template.File, t.Template.ConfigMap
		switch {
		case place != (targets.ConfigMapKey{}):
			name = path.Join(place.Name, place.Key)
		case name == "":
			return t.Template.Inline, nil
		}
		text, err := fs.ReadFile(dir, name)
		if errors.Is(err, fs.ErrNotExist) && place != (targets.ConfigMapKey{}) {
			return "", fmt.Errorf("the template in ConfigMap %s, key %s, is %w; put it into the file %s of the templates folder", place.Name, place.Key, errUnknownTemplate, name)
		}
		return string(text), err
	}
}

// manifestTemplates reads the templates that are in ConfigMaps from the
// manifest, or else, when a folder is given, as folderTemplates does it.
func manifestTemplates(m *manifest.Manifest, dir fs.FS) templateTexts {
	return func(t *targets.Target) (string, error) {
		place := t.Template.ConfigMap
		if place == (targets.ConfigMapKey{}) {
			return t.Template.Inline, nil
		}
		data, ok := m.ConfigMap(place.Name)
		text, found := data[place.Key]
		switch {
		case found:
			return text, nil
		case ok:
			return "", fmt.Errorf("the ConfigMap %s has no key %s", place.Name, place.Key)
		case dir != nil:
			return folderTemplates(dir)(t)
		}
		return "", fmt.Errorf("the ConfigMap %s is not in the manifest, so its template is %w; add it, or name a folder with its files by --templates-dir", place.Name, errUnknownTemplate)
	}
}
