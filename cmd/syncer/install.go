package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newInstallCommand() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		Use:   "install DIR",
		Short: "Copy this binary into a folder, such as a volume shared with a container without a shell",
		Long: `Copies this binary to DIR/syncer, for a container without a shell that shares the
volume. Creates the folder if it does not exist.`,
		RunE: func(_ *cobra.Command, args []string) error { return install(args[0]) },
	}
}

// install copies this binary to dir/syncer. It replaces that file atomically, because the
// file may be running.
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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the folder %s cannot be created: %w; mount a volume there that this user may write to", dir, err)
	}
	next, err := os.CreateTemp(dir, ".syncer-*")
	if err != nil {
		return fmt.Errorf("the folder %s cannot be written to: %w; mount a volume there that this user may write to", dir, err)
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
