package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// found is the result of the search for a group's template.
type found struct {
	set   bool   // a template exists, valid or invalid
	ok    bool   // it is valid, and the target knows its location
	known bool   // its text can be known now
	text  string // if known
	key   string // where it was found, for a Problem
}

// checkGroup checks a group's entries by its format and, if known, by its template. It
// reports problems at the template, or otherwise at key.
func (l *loader) checkGroup(t *targets.Target, f found, key string) {
	if len(t.Entries) == 0 || t.Format == targets.FormatTemplate && !f.ok {
		return
	}
	if f.known {
		key = f.key
	}
	l.correctable = t.Template.File != ""
	defer func() { l.correctable = false }()
	if err := render.Check(t, f.text); err != nil {
		l.failAll(key, err)
	}
}

// template finds the template of a file. With the format template, exactly one must exist:
// in a setting, or in the templates folder.
func (l *loader) template(t *targets.Target, g item, namespace string) found {
	given := l.givenTemplate(t, g, namespace)
	if t.Format != targets.FormatTemplate {
		return given
	}
	name := t.Group + ".tpl"
	path := filepath.Join(l.src.TemplatesDir, name)
	data, err := fs.ReadFile(l.src.Templates, name)
	switch {
	case given.ok && len(data) > 0:
		l.fail(given.key, "there is also the template file %s; remove one of the two", path)
		return found{set: true}
	case given.set && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return given
	}
	if !given.set {
		t.Template.File, l.correctable = name, true
		defer func() { l.correctable = false }()
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		l.fail(path, "the template cannot be read: %v", cause(err))
	case len(data) > 0:
		return found{set: true, ok: true, known: true, text: string(data), key: path}
	case err == nil:
		l.fail(path, "the template file of the group %q is empty", t.Group)
	default:
		l.fail(l.groupKey(t.Group, "template"), "the format template needs a template here, in a ConfigMap or in the file %s", path)
	}
	return found{set: true}
}

// givenTemplate finds the template that a setting contains or names.
func (l *loader) givenTemplate(t *targets.Target, g item, namespace string) found {
	inline, ref := g["template"], g["templateConfigMap"]
	if t.Format != targets.FormatTemplate {
		for _, val := range []value{inline, ref} {
			if val.set {
				l.warn(val.key, "not used by the format %s; set the format to template or remove it", t.Format)
			}
		}
		return found{}
	}
	switch {
	case inline.bad || ref.bad:
		return found{set: true}
	case inline.set && ref.set:
		l.fail(ref.key, "there is also a template in %s; remove one of the two", inline.key)
		return found{set: true}
	case inline.set:
		t.Template.Inline = inline.text
		return found{set: true, ok: true, known: true, text: inline.text, key: inline.key}
	case ref.set:
		at, err := definitions.ParseConfigMapRef(ref.text, t.Group, namespace)
		if err != nil {
			l.fail(ref.key, "%v", err)
			return found{set: true}
		}
		t.Template.ConfigMap = at
		return found{set: true, ok: true, key: ref.key}
	}
	return found{}
}
