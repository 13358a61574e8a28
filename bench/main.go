// Command bench measures Syncer as a whole process: the cost of an unchanged
// refresh, the memory, and the delivery time of a value. It starts a
// Conjur-compatible server, and one process after another beside it. The README
// describes the method for each figure. It needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/secretsync/syncer/internal/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	syncer, incumbent  string
	profile            string
	dir                string // parent of the created folders
	refreshes, changes int
	json               bool
}

func run(ctx context.Context, args []string) error {
	if slices.Equal(args, []string{bareClientFlag}) {
		return runBareClient(ctx, os.Stdin)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	report := &Report{Machine: thisMachine(o.dir), Date: time.Now()}
	for _, p := range profiles() {
		if o.profile != "all" && o.profile != p.name {
			continue
		}
		r, err := compare(ctx, p, o)
		if err != nil {
			return err
		}
		report.Profiles = append(report.Profiles, r)
	}
	if o.json {
		return report.WriteJSON(os.Stdout)
	}
	return report.WriteText(os.Stdout)
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.syncer, "syncer", "bin/syncer", "the `path` of the binary to measure")
	flags.StringVar(&o.incumbent, "incumbent", "", "the `path` of a static Secrets Provider to measure too; needs root, see the README")
	flags.StringVar(&o.profile, "profile", "all", "what to measure: small, large, node or all")
	flags.StringVar(&o.dir, "dir", memoryFolder(), "the `folder` to work in; by default one that is in memory, as a Pod's secrets are")
	flags.IntVar(&o.refreshes, "refreshes", 20, "how many unchanged refreshes to measure")
	flags.IntVar(&o.changes, "changes", 12, "how many changes to time")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if !slices.Contains([]string{"small", "large", "node", "all"}, o.profile) {
		return o, fmt.Errorf("-profile %q: use small, large, node or all", o.profile)
	}
	if o.refreshes < 1 || o.changes < 1 {
		return o, errors.New("-refreshes and -changes: at least 1")
	}
	if runtime.GOOS != "linux" {
		return o, errors.New("the figures come from Linux's /proc; there is none on " + runtime.GOOS)
	}
	for _, path := range []*string{&o.syncer, &o.incumbent} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
		if _, err := os.Stat(*path); err != nil {
			return o, fmt.Errorf("%w; build it first", err)
		}
	}
	return o, nil
}

// memoryFolder returns a folder on a tmpfs, or the folder for temporary files if
// there is none.
func memoryFolder() string {
	const shm = "/dev/shm"
	if fileSystem(shm) == tmpfs {
		return shm
	}
	return os.TempDir()
}

// compare measures all subjects for a profile, one after another.
func compare(ctx context.Context, p profile, o options) (ProfileReport, error) {
	report := ProfileReport{profile: p, refreshes: o.refreshes, incumbent: p.incumbent}
	self, err := os.Executable()
	if err != nil {
		return report, err
	}
	type column struct {
		subject
		to *figures
	}
	columns := []column{{syncer(o.syncer), &report.syncer}, {bareClient(self), &report.bare}}
	if o.incumbent != "" && p.incumbent != nil {
		columns = append(columns, column{incumbent(o.incumbent), &report.incumbent})
		report.incumbentMeasured = true
	}
	for _, c := range columns {
		fmt.Fprintf(os.Stderr, "bench: %s, %s …\n", p.name, c.name)
		m := measurement{profile: p, subject: c.subject, options: o}
		err := terminal.During(os.Stderr, "measuring", func() (err error) {
			*c.to, err = m.run(ctx)
			return err
		})
		if err != nil {
			return report, fmt.Errorf("%s, %s: %w", p.name, c.name, err)
		}
	}
	return report, nil
}
