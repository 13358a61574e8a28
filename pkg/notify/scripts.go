package notify

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

// scripts are for probes and hooks in containers that have a shell, by the
// names that the Secrets Provider gave them.
//
//go:embed scripts/*.sh
var scripts embed.FS

// InstallScripts puts the scripts for probes and hooks into the status folder,
// where the application's container can run them. What is there already is not
// touched.
func (s *Status) InstallScripts() error {
	err := s.installScripts()
	s.lacking.Store(err != nil)
	return err
}

func (s *Status) installScripts() error {
	entries, err := scripts.ReadDir("scripts")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := scripts.ReadFile("scripts/" + entry.Name())
		if err != nil {
			return err
		}
		if err := install(filepath.Join(s.dir, entry.Name()), text); err != nil {
			return fmt.Errorf("script: %w", err)
		}
	}
	return nil
}

// install replaces a script as a whole: a probe may be running it.
func install(path string, text []byte) (err error) {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, text) {
		return nil
	}
	next := path + ".new"
	defer func() {
		if err != nil {
			_ = os.Remove(next) // if that fails too, the next attempt replaces it
		}
	}()
	if err = os.WriteFile(next, text, 0o755); err != nil {
		return err
	}
	if err = os.Chmod(next, 0o755); err != nil { // whatever the umask
		return err
	}
	return os.Rename(next, path)
}
