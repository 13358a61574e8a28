package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
)

// runFlags are the flags of run.
type runFlags struct {
	sources   config.Sources
	logFormat string
	workers   int
	grace     time.Duration
	ownStatus bool // exec: the status folder is its own
}

func newRunCommand() *cobra.Command { return newRunCommandFor(&runFlags{}) }

// newRunCommandFor makes the command and has its flags set f.
func newRunCommandFor(f *runFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Deliver the secrets that the Pod's annotations name; what syncer does without a command",
		Long: `Reads the Pod's annotations, the environment and the configuration file, fetches
the variables from Conjur and writes them where these say: files, or Kubernetes
Secrets. In the modes init and application it ends when all is delivered; as a
sidecar it stays and keeps what it delivered fresh; standalone it does so for
many applications.

Exit status: 0 if the job was done, 1 if not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *f) },
	}
	flags := cmd.Flags()
	f.sources.Getenv = os.Getenv
	flags.StringVar(&f.sources.Annotations, "annotations", config.DefaultAnnotations, "the Pod's annotations, a file as the Downward API writes it")
	flags.StringVar(&f.sources.ConfigFile, "config", "", "a YAML configuration file")
	flags.StringVar(&f.sources.Kubeconfig, "kubeconfig", "", "the kubeconfig file that says where the cluster is (default: as the configuration, $KUBECONFIG or the Pod say)")
	flags.StringVar(&f.sources.SecretsDir, "secrets-dir", config.DefaultSecretsDir, "the folder below which secret files are written")
	flags.StringVar(&f.sources.TemplatesDir, "templates-dir", config.DefaultTemplatesDir, "the folder with template files, GROUP.tpl")
	flags.StringVar(&f.sources.StatusDir, "status-dir", config.DefaultStatusDir, "the folder for sentinel files")
	flags.StringVar(&f.logFormat, "log-format", "", "text or json (default text, or what the annotations say)")
	flags.IntVar(&f.workers, "workers", 4, "how many targets are worked on at once")
	flags.DurationVar(&f.grace, "grace", 20*time.Second, "how long writes under way may go on when told to stop")
	return cmd
}

// check reports the flags whose values make no sense.
func (f *runFlags) check() error {
	var errs []error
	if f.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers %d is too few; use at least 1", f.workers))
	}
	if f.grace < 0 {
		errs = append(errs, fmt.Errorf("--grace %v is too short; use at least 0s", f.grace))
	}
	return errors.Join(errs...)
}

// run does what the configuration says, to its end.
func run(ctx context.Context, f runFlags) error {
	standFast(unix.SIGPIPE, unix.SIGHUP)
	s, stop, err := newSupervisor(f)
	if err != nil {
		return err
	}
	defer stop()
	if err := s.run(ctx); err != nil {
		s.logEnd(err)
		return errLogged
	}
	s.log.Info("Ending")
	return nil
}

// standFast has signals change nothing in this process, for its life, and lets
// the processes that it starts take them as ever.
func standFast(signals ...os.Signal) { signal.Notify(make(chan os.Signal, 1), signals...) }
