package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/pipeline"
)

func newRunCommand() *cobra.Command { return newRunCommandFor(&pipeline.Options{}) }

// newRunCommandFor makes the command and has its flags set o.
func newRunCommandFor(o *pipeline.Options) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *o) },
	}
	flags := cmd.Flags()
	o.Sources.Getenv, o.Version = os.Getenv, version()
	flags.StringVar(&o.Sources.Annotations.Name, "annotations", config.DefaultAnnotations, "the Pod's annotations, a file as the Downward API writes it")
	flags.StringVar(&o.Sources.ConfigFile.Name, "config", "", "a YAML configuration file")
	flags.StringVar(&o.Sources.Kubeconfig, "kubeconfig", "", "the kubeconfig file that says where the cluster is (default: as the configuration, $KUBECONFIG or the Pod say)")
	flags.StringVar(&o.Sources.SecretsDir, "secrets-dir", config.DefaultSecretsDir, "the folder below which secret files are written")
	flags.StringVar(&o.Sources.TemplatesDir, "templates-dir", config.DefaultTemplatesDir, "the folder with template files, GROUP.tpl")
	flags.StringVar(&o.Sources.StatusDir, "status-dir", config.DefaultStatusDir, "the folder for sentinel files")
	flags.StringVar(&o.LogFormat, "log-format", "", "text or json (default text, or what the annotations say)")
	flags.IntVar(&o.Workers, "workers", 4, "how many targets are worked on at once")
	flags.DurationVar(&o.Grace, "grace", 20*time.Second, "how long writes under way may go on after SIGTERM")
	return cmd
}

// run does what the configuration says, to its end.
func run(ctx context.Context, o pipeline.Options) error {
	standFast(unix.SIGPIPE, unix.SIGHUP)
	p, stop, err := pipeline.New(o)
	if err != nil {
		return err
	}
	defer stop()
	if p.Run(ctx) != nil {
		return errLogged
	}
	p.Log().Info("Ending")
	return nil
}

// standFast has signals change nothing in this process, for its life, and lets
// the processes that it starts take them as ever.
func standFast(signals ...os.Signal) { signal.Notify(make(chan os.Signal, 1), signals...) }
