package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/terminal"
)

// release is the version of this source, which the chart and the documentation name.
const release = "0.2.0"

// defaultImage is the name that "make image" gives to the image.
const defaultImage = "secretsync/syncer:" + release

// commit and date describe the source of a build without Git, such as that of an image.
// The linker sets them: -X main.commit=….
var commit, date string

// build describes this binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // "unknown" without Git
	Date     string `json:"date"`   // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newBuild() build {
	b := build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	b.Commit, b.Date = cmp.Or(b.Commit, commit, "unknown"), cmp.Or(b.Date, date, "unknown")
	return b
}

// version is the version with the commit, if it is known, in the form of Semantic
// Versioning.
func version() string {
	b := newBuild()
	if b.Commit == "unknown" {
		return b.Version
	}
	return b.Version + "+" + b.Commit[:min(12, len(b.Commit))]
}

func newVersionCommand() *cobra.Command {
	var format *outputFlag
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and its date, the Go version and the platform",
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := newBuild()
			if format.ForPrograms() {
				return format.Write(cmd.OutOrStdout(), b)
			}
			text := b.Commit
			if b.Modified {
				text += ", with changes"
			}
			table := terminal.Columns(cmd.OutOrStdout())
			fmt.Fprintf(table, "syncer\t%s\ncommit\t%s\ndate\t%s\ngo\t%s\nplatform\t%s\n", b.Version, text, b.Date, b.Go, b.Platform)
			return table.Flush()
		},
	}
	format = addOutputFlag(cmd, output.Text)
	return cmd
}
