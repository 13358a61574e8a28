package home

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// backUpOnSignal copies the data to the file Backup at each SIGUSR1, until the
// caller calls stop. The copy is sealed like the data. It replaces an earlier copy
// atomically.
func (h *home) backUpOnSignal() (stop func()) {
	if h.Backup == "" {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range signals {
			if err := h.backUp(); err != nil {
				fmt.Fprintf(os.Stderr, "syncer: backup: %v\n", err)
			} else {
				fmt.Fprintf(os.Stderr, "syncer: backup written to %s\n", h.Backup)
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		wg.Wait()
	}
}

// checkBackup returns an error if a copy could not be written.
func (o *Options) checkBackup() error {
	if o.Backup == "" {
		return nil
	}
	file, err := os.OpenFile(o.nextBackup(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--backup: %w; name a file in a folder that exists and is writable", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// nextBackup returns the file that becomes the next copy.
func (o *Options) nextBackup() string { return o.Backup + ".new" }

func (h *home) backUp() error {
	next := h.nextBackup()
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // left by an interrupted backup
	}
	if err := h.server.Backup(next); err != nil {
		return err
	}
	return os.Rename(next, h.Backup)
}
