// Command syncer delivers secrets from Conjur to applications on Kubernetes and keeps
// them fresh. See the README.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/internal/suggest"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
)

func main() {
	if isShell(os.Args) {
		os.Exit(receive(inject.Scripts()))
	}
	os.Exit(start(newCommand()))
}

// delayCollection lets the heap grow to 8 MB instead of 4 before the first garbage
// collection. A sidecar's start allocates 3 MB. A collection during it takes a sixth of its
// CPU time, and the structures of the collector more memory than it frees. The usual rule
// returns with the first collection, or after a second. An operator's GOGC always applies.
func delayCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(200)
	restore := sync.OnceFunc(func() { debug.SetGCPercent(usual) })
	time.AfterFunc(time.Second, restore)
	runtime.AddCleanup(new([32]byte), func(restore func()) { restore() }, restore) // called by the first collection
}

// start runs the command line and returns the exit status.
func start(root *cobra.Command) int {
	delayCollection()
	// net/http logs unsolicited responses to the standard log, with bytes of them.
	log.SetOutput(io.Discard)
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(terminated, stop) // a second signal ends the process at once
	ctx, stop := signal.NotifyContext(terminated, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	setArgs(root, commandLine(os.Args))
	root.SetIn(interruptible{ctx, os.Stdin})
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && terminated.Err() != nil:
		fmt.Fprintln(os.Stderr, "syncer: terminated")
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "syncer: interrupted")
		return 128 + int(syscall.SIGINT) // as a shell has it
	case !errors.Is(err, errLogged):
		for _, problem := range joined.Errors(err) {
			fmt.Fprintf(os.Stderr, "syncer: %s\n", oneLine(problem.Error()))
		}
	}
	return exitStatus(err)
}

// errLogged is the error of a command that has already logged its problem.
var errLogged = errors.New("failed; see the log")

// statusError is an error that ends the process with a status other than 1.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// exitStatus is the exit status for an error: that of a statusError in it, else 1. The
// statuses are made where a command ends: by a signal in start, for a restart in place in
// run.go, and in exec.go and offline.go.
func exitStatus(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 1
}

// newCommand makes the command tree. Without a subcommand it runs run, as the entry point
// of an image does.
func newCommand() *cobra.Command {
	run := newRunCommand()
	root := &cobra.Command{
		Use:           "syncer",
		Short:         "Delivers secrets from Conjur to applications and keeps them fresh",
		Version:       version(),
		Args:          noSuchCommand,
		RunE:          run.RunE,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().AddFlagSet(run.Flags())
	root.AddCommand(run, newExecCommand(), newConjurdCommand(), newDemoCommand(), newSetCommand(), newPolicyCommand(), newRotateCommand(), newNodeCommand(),
		newStatusCommand(), newProbeCommand(), newWaitCommand(), newInstallCommand(),
		newValidateCommand(), newConfigCommand(), newExplainCommand(),
		newRenderCommand(), newDiffCommand(), newMigrateCommand(), newVersionCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Use, cmd.Args, cmd.RunE = cmd.Name()+" COMMAND", noSuchCommand, needsCommand
		}
		if cmd.Name() == "help" {
			cmd.Args = noSuchTopic
		}
	}
	root.SetFlagErrorFunc(flagError)
	eachCommand(root, func(cmd *cobra.Command) {
		if cmd.Args == nil || cmd.HasParent() && cmd.Parent().Name() == "completion" {
			cmd.Args = checkUsage
		}
	})
	return root
}

// setArgs gives a command line to the tree. Completion is added only if a shell asks for
// it, since it would take a quarter of a millisecond of every start.
func setArgs(root *cobra.Command, args []string) {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		eachCommand(root, addCompletion)
	}
	root.SetArgs(args)
}

// eachCommand calls do with a command and all commands below it.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

// needsCommand refuses a command that only groups others. If it printed its help, a
// script with a missing or misspelled subcommand would seem to succeed.
func needsCommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return fmt.Errorf("%s needs a command: %s; see %[1]s --help", cmd.CommandPath(), strings.Join(names, ", "))
}

// noSuchTopic refuses help about a command that does not exist.
func noSuchTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && found.HasSubCommands() {
		err = noSuchCommand(found, rest)
	}
	return err
}

// noSuchCommand refuses an argument that is not a subcommand, and names the one that was
// probably meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		distance := func(name string) int {
			if strings.HasPrefix(name, args[0]) {
				return 0 // whoever stops typing misspells nothing
			}
			return suggest.Distance(args[0], name)
		}
		slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
		return fmt.Errorf("unknown command %q; did you mean %s %s?", args[0], cmd.CommandPath(), near[0])
	}
	return fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// aliases returns the command line for another name of the binary. These names are the
// scripts of the Secrets Provider. A hook or probe that names such a script also finds it
// in an image without a shell.
func aliases(name string) []string {
	switch name {
	case "conjur-secrets-provided.sh":
		return []string{"wait"}
	case "conjur-secrets-unchanged.sh":
		return []string{"probe", "unchanged"}
	}
	return nil
}

// commandLine is the command line without the binary's name. If that name is an alias, it
// is the aliased command line. An alias uses the status folder, as the scripts do.
func commandLine(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	alias, rest := aliases(filepath.Base(args[0])), args[1:]
	switch {
	case alias == nil:
		return rest
	case len(rest) == 0:
		return alias
	}
	return append(alias, append([]string{"--status-dir"}, rest...)...)
}

// interruptible is an input whose reads end with the context, so that ^C ends a command
// that waits for its standard input.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

// Read implements io.Reader. If the context ends first, the blocked read remains until the
// process exits, which follows.
func (r interruptible) Read(p []byte) (int, error) {
	buffer := make([]byte, len(p))
	type read struct {
		n   int
		err error
	}
	done := make(chan read, 1)
	go func() {
		n, err := r.in.Read(buffer)
		done <- read{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case got := <-done:
		if err := r.ctx.Err(); err != nil {
			return 0, err // ^C also ended the program that writes the input, maybe halfway
		}
		copy(p, buffer[:got.n])
		clear(buffer) // it may hold a secret value
		return got.n, got.err
	}
}
