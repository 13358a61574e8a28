package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	processes "github.com/secretsync/syncer/pkg/notify/process"
	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/tool"
)

// execFlags are the flags of exec.
type execFlags struct {
	options     pipeline.Options
	ownStatus   bool // the status folder belongs to this container alone
	groups      []string
	onChange    string
	stopTimeout time.Duration
}

func newExecCommand() *cobra.Command {
	var f execFlags
	run := newRunCommandFor(&f.options)
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT...]",
		Short: "Deliver the secrets, then run a command and keep its secrets fresh",
		Long: `For a container without a sidecar. Runs the command once all secrets were delivered,
and then keeps them fresh. A change restarts the command, unless --on-change sets
another effect. Without a setting, syncer polls every five minutes.

With --env, the entries of a secret group become environment variables of the
command, named by their aliases, and are not written to a file. A restart stops the
command only if it can start with the new environment.

The command does not inherit Syncer's own credentials:
- ` + strings.Join(config.CredentialVariables(), "\n- ") + `

Unless the command runs as root, it also cannot read them from Syncer's memory.

Syncer forwards signals to the command, and exits when it exits. As the first process
of a container, syncer reaps orphans. By default, the folder of sentinel files is a
temporary folder of this container.

Exit status:
- the command's exit status, or 128 plus the number of the signal that ended it
- 127 if the command is not found, 126 if it cannot run
- 1 if the secrets could not be delivered, or had to be removed`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("exec: no command given; write the command and its arguments after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.ownStatus = !cmd.Flags().Changed("status-dir")
			f.options.Sources.AnnotationsNamed = cmd.Flags().Changed("annotations")
			return execute(cmd.Context(), f, args)
		},
	}
	cmd.Flags().AddFlagSet(run.Flags())
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault) // programs and files
	cmd.Flags().SetInterspersed(false)                                                   // the rest belongs to the command
	cmd.Flags().StringArrayVar(&f.groups, "env", nil, "a secret group that becomes environment variables; repeatable")
	_ = cmd.RegisterFlagCompletionFunc("env", func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return groupsOf(&tool.Tool{Sources: f.options.Sources}).complete(cmd, args, begun)
	})
	cmd.Flags().StringVar(&f.onChange, "on-change", "restart", "the effect of a change: restart, signal:SIGHUP (or another signal) or none")
	cmd.Flags().DurationVar(&f.stopTimeout, "stop-timeout", 10*time.Second, "time for the command to exit before syncer kills it; forwarded signals start no timeout")
	return cmd
}

// execution is a command that runs with fresh secrets.
type execution struct {
	process     *pipeline.Process
	runner      *processes.Runner // nil until the secrets are delivered
	environment *sinks.Environment
}

// execute delivers the secrets, runs the command, and ends when it ends.
func execute(ctx context.Context, f execFlags, args []string) error {
	reaction, err := processes.ParseReaction(f.onChange)
	if err != nil {
		return fmt.Errorf("--on-change: %w", err)
	}
	clean, err := f.makeStatus()
	if err != nil {
		return err
	}
	defer clean()
	beSidecar(&f.options.Sources)
	ignoreSignals(unix.SIGPIPE)
	if err := hide(); err != nil {
		return err
	}
	e := &execution{environment: &sinks.Environment{}}
	f.options.Parts.Command = &pipeline.Command{Groups: f.groups, Environment: e.environment, Notify: e.notify}
	var stop func()
	if e.process, stop, err = pipeline.New(f.options); err != nil {
		return err
	}
	defer stop()
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, processes.Forwarded()...)
	defer signal.Stop(signals)

	mode, err := e.process.Deliver(ctx)
	if err != nil {
		return errLogged
	}
	for len(signals) > 0 {
		if s := <-signals; s == unix.SIGTERM || s == unix.SIGINT {
			return &statusError{128 + int(s.(unix.Signal)), errLogged}
		}
	}
	e.runner = processes.NewRunner(processes.RunnerConfig{
		Args:        args,
		Environ:     e.environ,
		Signals:     signals,
		OnChange:    reaction,
		StopTimeout: f.stopTimeout,
		Log:         e.process.Log(),
	})
	refresh := e.process.Run
	if mode.OneShot() {
		refresh = func(context.Context) error { return nil }
	}
	return e.runBoth(context.WithoutCancel(ctx), refresh) // the command handles signals
}

// notify makes the running command react to a change.
func (e *execution) notify(ctx context.Context) error {
	if e.runner == nil {
		return nil
	}
	return e.runner.Notify(ctx)
}

// runBoth runs the command while refresh keeps its secrets fresh. It stops both when the
// command ends, or when refresh fails.
func (e *execution) runBoth(ctx context.Context, refresh func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var refreshing sync.WaitGroup
	var failed error // the error of refresh, once it has ended
	refreshing.Go(func() {
		if failed = refresh(ctx); failed != nil {
			stop()
		}
	})
	status, err := e.runner.Run(ctx)
	stop()
	refreshing.Wait()
	log := e.process.Log()
	switch {
	case err != nil:
		log.Error("The command could not be started", zap.Error(err))
	case failed != nil:
		return errLogged
	default:
		log.Info("The command has ended", zap.Int("status", status))
		if status == 0 {
			return nil
		}
	}
	return &statusError{status, errLogged}
}

// environ returns the environment of the command. It is this process's environment
// without its credentials. The variables of the secret groups replace those of the same
// names.
func (e *execution) environ() []string {
	variables := e.environment.Variables()
	var replaced []string
	for _, variable := range variables {
		replaced = append(replaced, variableName(variable))
	}
	kept := slices.DeleteFunc(config.WithoutCredentials(os.Environ()), func(variable string) bool {
		return slices.Contains(replaced, variableName(variable))
	})
	return append(kept, variables...)
}

// variableName returns the name of "NAME=value".
func variableName(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// makeStatus creates a status folder for this process alone, unless the command line
// names one. clean removes it.
func (f *execFlags) makeStatus() (clean func(), err error) {
	if !f.ownStatus {
		return func() {}, nil
	}
	var errs []error
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		dir, err := os.MkdirTemp(parent, "syncer-status-")
		if err == nil {
			f.options.Sources.StatusDir = dir
			return func() { _ = os.RemoveAll(dir) }, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("status folder: %w; mount a volume for it, and name it with --status-dir", errors.Join(errs...))
}

// execDefaults are the variables of the environment that exec sets if they are not set.
var execDefaults = map[string]string{"CONTAINER_MODE": string(config.ModeSidecar), "SECRETS_REFRESH_INTERVAL": "5m"}

// beSidecar makes sidecar the default mode of a configuration, and lets it refresh.
func beSidecar(sources *config.Sources) {
	getenv := sources.Getenv
	sources.Getenv = func(name string) string { return cmp.Or(getenv(name), execDefaults[name]) }
}
