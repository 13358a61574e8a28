package notify

import (
	"bytes"
	"embed"
	"errors"
	"fmt"

	"github.com/secretsync/syncer/internal/safefile"
)

// scripts are for probes and hooks in containers that have a shell. Their names come from
// the Secrets Provider.
//
//go:embed scripts/*.sh
var scripts embed.FS

// InstallScripts puts the scripts for probes and hooks into the status folder, where the
// application's container can run them. It does not rewrite a script that is already
// there with the same text.
func (s *Status) InstallScripts() error {
	err := s.installScripts()
	s.lacking.Store(err != nil)
	return err
}

func (s *Status) installScripts() error {
	// Remove the files that a killed process left. A file that stays does no harm.
	if temps, err := s.names(safefile.IsTempName); err == nil {
		for _, name := range temps {
			_ = s.remove(name)
		}
	}
	entries, err := scripts.ReadDir("scripts")
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		text, err := scripts.ReadFile("scripts/" + entry.Name())
		if err == nil {
			err = s.install(entry.Name(), text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("script: %w", err))
		}
	}
	return errors.Join(errs...)
}

// install replaces a script atomically, because a probe may be running it.
func (s *Status) install(name string, text []byte) error {
	if there, err := s.read(name); err == nil && bytes.Equal(there, text) {
		return nil
	}
	return s.put(name, note{text: text, mode: 0o755})
}
