package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/tool/demo"
)

func newRunCommand() *cobra.Command { return newRunCommandFor(&pipeline.Options{}) }

// newRunCommandFor makes the command, whose flags set o.
func newRunCommandFor(o *pipeline.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Deliver the configured secrets; the default command",
		Long: `Fetches the variables from Conjur and writes them to files or to Kubernetes Secrets,
as annotations, environment and configuration file say. In the modes init and
application, it exits after the delivery. As a sidecar, it keeps the secrets fresh,
and as standalone those of many applications.

Exit status: 0, 1 after an error, or 85 if all containers of the Pod are to restart in
place (restart-app-in-place).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Sources.AnnotationsNamed = cmd.Flags().Changed("annotations")
			return run(cmd.Context(), *o)
		},
	}
	flags := cmd.Flags()
	o.Sources.Getenv, o.Parts.Version = os.Getenv, version()
	flags.StringVar(&o.Sources.Annotations.Name, "annotations", config.DefaultAnnotations, "the file of the Pod's annotations, as the Downward API writes it")
	flags.StringVar(&o.Sources.ConfigFile.Name, "config", "", "the YAML configuration file")
	flags.StringVar(&o.Sources.Kubeconfig, "kubeconfig", "", "the kubeconfig file for access to the cluster (default: from the configuration, $KUBECONFIG or the Pod)")
	flags.StringVar(&o.Sources.SecretsDir, "secrets-dir", config.DefaultSecretsDir, "the folder below which secret files are")
	flags.StringVar(&o.Sources.TemplatesDir, "templates-dir", config.DefaultTemplatesDir, "the folder of template files, GROUP.tpl")
	flags.StringVar(&o.Sources.StatusDir, "status-dir", config.DefaultStatusDir, "the folder of sentinel files")
	flags.StringVar(&o.LogFormat, "log-format", "", "format of log lines: text or json (default: as configured, else text)")
	flags.IntVar(&o.Parts.Workers, "workers", 4, "maximum number of files, or of Secrets of one namespace, at the same time")
	flags.DurationVar(&o.Parts.Grace, "grace", 20*time.Second, "how long writes in progress can continue after SIGTERM")
	return cmd
}

// run applies the configuration until it is done.
func run(ctx context.Context, o pipeline.Options) error {
	ignoreSignals(unix.SIGPIPE, unix.SIGHUP)
	p, stop, err := pipeline.New(o)
	if err != nil {
		return err
	}
	stop = sync.OnceFunc(stop)
	defer stop()
	err = p.Run(ctx)
	if restart, ok := errors.AsType[*pipeline.RestartError](err); ok {
		p.Log().Info("Ending, so that the kubelet restarts all containers of the Pod in place", zap.Int("status", config.InPlaceStatus))
		stop()
		if err := restart.Record(); err != nil {
			return err
		}
		os.Exit(config.InPlaceStatus) // at once: a kill between these two loses the restart
	}
	if err != nil {
		return errLogged
	}
	p.Log().Info("Ending")
	return nil
}

// ignoreSignals makes this process ignore signals for its life. Processes that it starts
// handle them as usual.
func ignoreSignals(signals ...os.Signal) { signal.Notify(make(chan os.Signal, 1), signals...) }

func newDemoCommand() *cobra.Command {
	var life time.Duration
	var rotation bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show how changes in Conjur reach five groups of secrets",
		Long: `Starts a Conjur-compatible server on loopback with 25 variables. Runs Syncer
against it, over TLS, into a temporary folder. Then it rotates values, edits a
template, revokes a variable and restores it. It shows each change when it reaches
its file. It prints the address of its status page, and never shows a value.

With --rotate, it rotates a key instead, while two programs sign and verify tokens.

Exit status: 0 only if every change arrived, or no token was rejected.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ignoreSignals(unix.SIGPIPE, unix.SIGHUP) // the failed write ends it, and removes its folder
			if rotation {
				err = demo.Rotate(cmd.Context(), cmd.OutOrStdout())
			} else {
				err = demo.Run(cmd.Context(), life, cmd.OutOrStdout())
			}
			if errors.Is(err, unix.EPIPE) {
				return errLogged // whoever closed the output knows
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&rotation, "rotate", false, "show the rotation of a key set")
	cmd.Flags().DurationVar(&life, "for", 20*time.Second, "how long to run")
	return cmd
}
