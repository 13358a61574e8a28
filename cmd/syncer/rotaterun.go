package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/logs"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/pipeline/rotators"
	"github.com/secretsync/syncer/pkg/rotation"
)

func newRotateRun() *cobra.Command {
	var file, format string
	var once bool
	cmd := &cobra.Command{
		Use: "run --config FILE", Short: "Rotate the sets of a configuration file, without a cluster",
		Long: `Rotates the sets below "rotation" in the configuration file until SIGTERM, like a
standalone Syncer in a cluster. With --once, it does the work that is due and exits;
call it regularly.

Exit status with --once: 0 if each set waits for its schedule or for its consumers,
1 if a set could not reach that state.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ignoreSignals(unix.SIGPIPE, unix.SIGHUP)
			lines := logs.NewQueue(os.Stderr)
			log, _, err := logs.New(format, lines)
			if err != nil {
				return err
			}
			defer lines.Start()()
			return rotateRun(cmd.Context(), file, once, log)
		},
	}
	addConfigFlag(cmd, &file)
	cmd.Flags().BoolVar(&once, "once", false, "exit when no set has work that is due")
	cmd.Flags().StringVar(&format, "log-format", "text", "format of log lines: text or json")
	return cmd
}

func addConfigFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", os.Getenv(config.ConfigFileVariable), "the YAML configuration file")
}

// rotateRun rotates until ctx ends. If once is true, it ends when nothing can be done
// now. It logs errors.
func rotateRun(ctx context.Context, file string, once bool, log *zap.Logger) error {
	r, closing, err := loadRotator(file, log)
	if err != nil {
		log.Error("Ending with an error", zap.Error(err))
		return errLogged
	}
	defer closing()
	if !once {
		log.Info("Rotating", zap.String("file", file))
		r.Run(ctx)
		return nil
	}
	stop := showProgress(os.Stdout, r.Reports)
	err = r.Once(ctx)
	stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		log.Error("A step of some sets failed; run the command again to continue", zap.Error(err))
		return errLogged
	}
	return nil
}

var (
	errNoFile = errors.New("no configuration file; name it with --config")
	errNoSet  = errors.New("name a set, or with --config the configuration file of all sets")
)

// loadRotator returns the rotator of the sets of a file, without a cluster.
func loadRotator(file string, log *zap.Logger) (*rotation.Rotator, func(), error) {
	if file == "" {
		return nil, nil, errNoFile
	}
	c, warnings, err := config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(file), Getenv: os.Getenv})
	for _, w := range warnings {
		log.Warn(w.Message, zap.String("key", w.Key))
	}
	if err != nil {
		return nil, nil, err
	}
	return rotators.Connect(c, rotators.Parts{Options: connect.Options{Version: version(), Log: log}})
}

// loadLook returns an inspector of the sets of a file. It uses the cluster if the file
// belongs to a standalone.
func loadLook(file string) (*rotation.Rotator, func(), error) {
	cfg, _, err := config.Load(config.Sources{ConfigFile: config.ReadFile(file), Getenv: os.Getenv})
	if err != nil || cfg.Mode != config.ModeStandalone {
		return loadRotator(file, zap.NewNop())
	}
	return rotators.Look(cfg, connect.Options{Version: version(), Log: zap.NewNop()})
}

// lookAtSets prints the progress of the sets of a file, and what each waits for. It
// returns an error if a set cannot be read.
func lookAtSets(ctx context.Context, file string, out io.Writer, format output.Format) error {
	r, closing, err := loadLook(file)
	if err != nil {
		return err
	}
	defer closing()
	reports := r.Look(ctx)
	if format.ForPrograms() {
		return printReports(out, reports, format)
	}
	var broken error
	table := terminal.Columns(out)
	fmt.Fprintln(table, "SET\tSTAGE\tFOR\tPRIMARY\tWAITS FOR")
	for _, report := range reports {
		if report.Problem != "" {
			broken = errLogged
		}
		since := "-"
		if !report.Since.IsZero() {
			since = brief.Duration(time.Since(report.Since).Round(time.Second))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", report.Set, cmp.Or(report.Stage, "-"), since, cmp.Or(report.Primary, "-"), oneLine(cmp.Or(report.Problem, report.WaitsFor)))
	}
	broken = errors.Join(table.Flush(), broken)
	for _, report := range reports {
		for _, u := range report.Unread {
			fmt.Fprintf(out, "%s is shown in namespace %s, which cannot be followed: %s\n", report.Set, u.Namespace, oneLine(u.Why))
		}
		if len(report.Unasked) > 0 {
			fmt.Fprintf(out, "%s is used by Pods that confirm does not name: %s\n", report.Set, oneLine(strings.Join(report.Unasked, ", ")))
		}
	}
	return broken
}

// checkSets prints every problem that would prevent the rotation of the sets of a file.
func checkSets(ctx context.Context, file string, out io.Writer, format output.Format) error {
	r, closing, err := loadLook(file)
	if err != nil {
		return err
	}
	defer closing()
	return printChecks(out, r.Reminders(ctx), r.Check(ctx), "all sets can be rotated", format)
}

// printChecks prints the reminders and problems of sets, or that there is no problem. It
// returns an error if there is one.
func printChecks(out io.Writer, reminders, problems map[string][]string, fine string, format output.Format) (err error) {
	reminding, found := lines(reminders), lines(problems)
	if format.ForPrograms() {
		err = format.Write(out, map[string][]string{"problems": found, "reminders": reminding})
	} else {
		all := slices.Concat(reminding, found)
		if len(found) == 0 {
			all = append(all, fine)
		}
		_, err = fmt.Fprintln(out, strings.Join(all, "\n"))
	}
	if err == nil && len(found) > 0 {
		err = errLogged
	}
	return err
}

// lines returns one line for each remark on a set, in ascending order of the sets.
func lines(said map[string][]string) []string {
	all := []string{}
	for _, set := range slices.Sorted(maps.Keys(said)) {
		for _, text := range said[set] {
			all = append(all, set+": "+oneLine(text))
		}
	}
	return all
}
