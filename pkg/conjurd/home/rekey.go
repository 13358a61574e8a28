package home

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// keyPollInterval is the interval between checks of the data key file, and of the data file.
const keyPollInterval = time.Second

// watchData returns a context that ends when the data file is no longer in its place.
// stop returns that error. A server on another file's data is of no use.
func (h *home) watchData(ctx context.Context) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(keyPollInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			if err := h.server.InPlace(); err != nil {
				cancel()
				done <- err
				return
			}
		}
	}()
	return ctx, func() error { cancel(); return <-done }
}

// followKey reseals the data when a new data key appears, until the caller calls
// stop.
func (h *home) followKey() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(keyPollInterval)
		defer tick.Stop()
		for said := ""; ; {
			rekeyed, err := h.server.Rekey(ctx, h.path(dataKeyFile))
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && err.Error() != said:
				said = err.Error()
				fmt.Fprintf(os.Stderr, "syncer: rekey: %v\n", err)
			case err == nil && rekeyed:
				said = ""
				fmt.Fprintln(os.Stderr, "syncer: all data are sealed under the new data key; nothing is left under another one")
			}
			if _, fixed := os.LookupEnv(conjurd.DataKeyEnv); fixed && err == nil {
				return // the environment is constant for the process
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Rekey reseals the data in the folder under a new data key. The server that serves
// the folder does the work. If there is none, Rekey does it. Rekey returns when the
// old key seals no data and is deleted. A repeated call resumes an interrupted one.
func Rekey(ctx context.Context, o Options, out io.Writer) error {
	switch _, fixed := os.LookupEnv(conjurd.DataKeyEnv); {
	case o.Dir == "":
		return errors.New("conjurd rekey: name the folder with --dir")
	case fixed:
		return fmt.Errorf("conjurd rekey: the data key is in %s; put a new one before it there, separated by a space, and start the server; remove the old one when the server reports that nothing uses it", conjurd.DataKeyEnv)
	}
	key := o.path(dataKeyFile)
	switch err := conjurd.AddDataKey(key); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; prepare the folder with conjurd init", err)
	case err != nil && !errors.Is(err, conjurd.ErrRekeying):
		return err
	}
	// If the data is in use, a server reseals it.
	if err := rekeyAlone(ctx, o); err != nil && !errors.Is(err, conjurd.ErrInUse) {
		return err
	}
	for {
		pending, err := conjurd.Rekeying(key)
		if err != nil {
			return err
		}
		if !pending {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("conjurd rekey: it is not done yet; the server goes on: %w", ctx.Err())
		case <-time.After(keyPollInterval / 4):
		}
	}
	_, err := fmt.Fprintln(out, "all data are sealed under the new data key; backups from before need the old one")
	return err
}

// rekeyAlone reseals the data without a server.
func rekeyAlone(ctx context.Context, o Options) (err error) {
	key := o.path(dataKeyFile)
	o.Data, o.Create = o.path(dataFile), false
	if o.DataKey, err = conjurd.DataKey(key, false); err != nil {
		return err
	}
	server, err := conjurd.Open(o.Options)
	if err != nil {
		return err
	}
	_, err = server.Rekey(ctx, key)
	return errors.Join(err, server.Close())
}
