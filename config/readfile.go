package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/render"
)

// maxFileBytes limits the size of a file. It is much more than a configuration file or a
// Pod's annotations, which have at most 256 KiB.
const maxFileBytes = 32 << 20

// File is an input file of Load.
type File struct {
	Name string // for a Problem
	Text []byte
	Err  error // the read error, without the file's name
}

// ReadFile reads a whole file of a reasonable size.
func ReadFile(name string) File {
	text, err := safefile.Read(name, maxFileBytes)
	return File{name, text, cause(err)}
}

// Read returns the sources with the current content of their files. Without a name, the
// configuration file is that of the variable ConfigFileVariable. Read opens no other file
// than those that the sources name.
func (s Sources) Read() Sources {
	if s.Annotations.Name != "" {
		s.Annotations = ReadFile(s.Annotations.Name)
	}
	if s.ConfigFile.Name == "" && s.Getenv != nil {
		s.ConfigFile.Name = s.Getenv(ConfigFileVariable)
	}
	if s.ConfigFile.Name != "" {
		s.ConfigFile = ReadFile(s.ConfigFile.Name)
	}
	if s.Templates == nil && s.TemplatesDir != "" {
		s.Templates = TemplateFolder(s.TemplatesDir)
	}
	return s
}

// TemplateFolder is a folder of template files. It supports only reads of whole files.
type TemplateFolder string

// ReadFile returns a file's content.
func (dir TemplateFolder) ReadFile(name string) ([]byte, error) {
	return safefile.Read(filepath.Join(string(dir), name), render.MaxTemplate)
}

// Open always returns an error.
func (TemplateFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// cause removes the path from an error.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
