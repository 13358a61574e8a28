package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
	"github.com/secretsync/syncer/pkg/notify"
)

// newProbeCommand makes the commands for containers without a shell. They replace the
// scripts in the status folder.
func newProbeCommand() *cobra.Command {
	var dir string
	probe := &cobra.Command{
		Use:   "probe",
		Short: "Answer a liveness, readiness or startup probe from the status folder",
	}
	probe.PersistentFlags().StringVar(&dir, "status-dir", config.DefaultStatusDir, "the folder of sentinel files")
	add := func(name, short string, ask func(dir string) error) {
		probe.AddCommand(&cobra.Command{
			Use: name, Short: short,
			RunE: func(*cobra.Command, []string) error { return ask(dir) },
		})
	}
	add("provided", "Succeed if all secrets were provided once", notify.Provided)
	add("unchanged", "Fail once after the secrets were updated, so that the container restarts", notify.Unchanged)
	add("alive", "Succeed if the sidecar sent a heartbeat since the last such probe", notify.Alive)
	return probe
}

// isShell reports whether the binary was called by the name sh. Conjur's authn-k8s does
// this in a container that requested a certificate.
func isShell(args []string) bool { return len(args) > 0 && filepath.Base(args[0]) == "sh" }

// receive stores the certificate, and does nothing else that a shell would do. It returns
// the exit status.
func receive(scripts []inject.Script) int {
	signal.Ignore(unix.SIGPIPE) // the caller may have disconnected
	status, err := inject.Receiver{
		Path:    cmp.Or(os.Getenv(config.InboxVariable), config.DefaultInbox),
		Scripts: scripts,
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
	}.Receive()
	if err != nil {
		fmt.Fprintf(os.Stderr, "syncer, called as sh to receive a certificate from Conjur: %v\n", err)
	}
	return status
}

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
	next, err := safefile.CreateTemp(dir)
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
