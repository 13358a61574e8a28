package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/notify"
)

// newProbeCommand makes the commands that do for containers without a shell
// what the scripts in the status folder do for those with one.
func newProbeCommand() *cobra.Command {
	var dir string
	probe := &cobra.Command{
		Use:   "probe",
		Short: "Answer a liveness, readiness or startup probe from the status folder",
		// Help would be a success, and a misspelt probe would never fail.
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("probe %s: there are alive, provided and unchanged", strings.Join(args, " "))
		},
	}
	probe.PersistentFlags().StringVar(&dir, "status-dir", config.DefaultStatusDir, "the folder with the sentinel files")
	add := func(name, short string, healthy func(*notify.Status) (bool, error), otherwise func(*notify.Status) error) {
		probe.AddCommand(&cobra.Command{
			Use: name, Short: short, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				status := notify.OpenStatus(dir)
				ok, err := healthy(status)
				if err == nil && !ok {
					err = otherwise(status)
				}
				return err
			},
		})
	}
	add("provided", "Succeed when all secrets have been provided once",
		(*notify.Status).Provided, notProvided)
	add("unchanged", "Fail once after the secrets were updated, so that the container is restarted",
		func(s *notify.Status) (bool, error) {
			updated, err := s.TakeUpdated()
			return !updated, err
		}, func(*notify.Status) error { return errors.New("the secrets were updated") })
	add("alive", "Succeed when the sidecar's heart has beaten since the last such probe",
		(*notify.Status).TakeBeat, func(*notify.Status) error { return errors.New("no heartbeat since the last probe") })
	return probe
}

// notProvided says what is missing, as far as the status folder says it.
func notProvided(status *notify.Status) error {
	missing, err := status.Missing()
	switch {
	case err != nil:
		missing = fmt.Sprintf("not known: %v", err)
	case missing == "":
		missing = "not known; see the log of Syncer"
	}
	return fmt.Errorf("the secrets have not been provided yet; missing: %s", missing)
}

// waitMost is how long wait waits by default: while a postStart hook runs, a
// Pod shows no log of the container and cannot be deleted.
const waitMost = 2 * time.Minute

// waitStep is the time between two looks at the status folder.
const waitStep = 200 * time.Millisecond

func newWaitCommand() *cobra.Command {
	var dir string
	var most time.Duration
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until all secrets have been provided; for a postStart hook",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if most > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, most)
				defer cancel()
			}
			status := notify.OpenStatus(dir)
			err := waitProvided(ctx, status)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("not there after %v: %w", most, notProvided(status))
			}
			if err != nil {
				return fmt.Errorf("waiting for %s: %w", filepath.Join(dir, notify.ProvidedFile), err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "status-dir", config.DefaultStatusDir, "the folder with the sentinel files")
	cmd.Flags().DurationVar(&most, "timeout", waitMost, "give up after this time, and say what is missing; 0: never")
	return cmd
}

func waitProvided(ctx context.Context, status *notify.Status) error {
	look := time.NewTicker(waitStep)
	defer look.Stop()
	for {
		if provided, err := status.Provided(); provided || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func newInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy this binary into a folder, such as a volume shared with a container that has no shell",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return install(args[0]) },
	}
}

// install replaces DIR/syncer as a whole: it may be running there.
func install(dir string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	next, err := os.CreateTemp(dir, ".syncer-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	_, err = io.Copy(next, from)
	if err = errors.Join(err, next.Chmod(0o755), next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), filepath.Join(dir, "syncer"))
}
