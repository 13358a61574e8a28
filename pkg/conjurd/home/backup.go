package home

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// backUpOnSignal copies the data to the file Backup at each SIGUSR1, until
// the function that it returns is called. The copy is sealed as the data is,
// and replaces an earlier one as a whole.
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

func (h *home) backUp() error {
	next := h.Backup + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // the rest of a backup that was cut off
	}
	if err := h.server.Backup(next); err != nil {
		return err
	}
	return os.Rename(next, h.Backup)
}
