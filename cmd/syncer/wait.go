package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/notify"
)

// waitMost is the default limit of wait. While a postStart hook runs, a Pod shows no log
// of the container and cannot be deleted.
const waitMost = 2 * time.Minute

func newWaitCommand() *cobra.Command {
	var dir, log string
	var most time.Duration
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until all secrets were provided; for a postStart hook",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := notify.Wait(cmd.Context(), dir, most)
			if err != nil {
				return errors.Join(err, terminationMessage(log, err))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "status-dir", config.DefaultStatusDir, "the folder of sentinel files")
	cmd.Flags().DurationVar(&most, "timeout", waitMost, "give up after this time and list the missing targets; 0 waits forever")
	cmd.Flags().StringVar(&log, "termination-log", "/dev/termination-log", "the file from which the kubelet reads why a container ended; written only if it exists")
	return cmd
}

// terminationMessage writes why a hook fails to the file of the container's termination
// message. The kubelet drops a hook's output, and now ends the container.
func terminationMessage(path string, why error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not in a Kubernetes container
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, why)
	return errors.Join(err, file.Close())
}
