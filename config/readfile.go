package config

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/render"
)

// maxFileBytes bounds what is read of a file: far more than the annotations of
// a Pod, which are 256 KiB, or a configuration file, ever have.
const maxFileBytes = 32 << 20

// File is a file that Load is given.
type File struct {
	Name string // for a Problem
	Text []byte
	Err  error // why it could not be read, without the file's name
}

// ReadFile reads a whole file of a reasonable size.
func ReadFile(name string) File {
	text, err := safefile.Read(name, maxFileBytes)
	return File{name, text, cause(err)}
}

// Read returns the sources with what their files hold now: those of the names
// that they have, or else those of the Secrets Provider, of the variable
// ConfigFileVariable and of TemplatesDir.
func (s Sources) Read() Sources {
	s.Annotations = ReadFile(cmp.Or(s.Annotations.Name, DefaultAnnotations))
	if s.ConfigFile.Name == "" && s.Getenv != nil {
		s.ConfigFile.Name = s.Getenv(ConfigFileVariable)
	}
	if s.ConfigFile.Name != "" {
		s.ConfigFile = ReadFile(s.ConfigFile.Name)
	}
	if s.Templates == nil {
		s.Templates = TemplateFolder(cmp.Or(s.TemplatesDir, DefaultTemplatesDir))
	}
	return s
}

// TemplateFolder is a folder of template files. Whole files are all that can be
// read of it.
type TemplateFolder string

// ReadFile returns a file's content.
func (dir TemplateFolder) ReadFile(name string) ([]byte, error) {
	return safefile.Read(filepath.Join(string(dir), name), render.MaxTemplate)
}

// Open opens no file.
func (TemplateFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// cause takes the path off an error.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
