package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/output"
)

// outputFlag is a flag for the format of a command's output.
type outputFlag struct{ output.Format }

// addOutputFlag adds the flag --output to a command that prints data.
func addOutputFlag(cmd *cobra.Command, format output.Format) *outputFlag {
	o := &outputFlag{format}
	cmd.Flags().VarP(o, "output", "o", "the output format: "+formats())
	return o
}

// formats lists the formats of the output.
func formats() string {
	names := make([]string, len(output.Formats()))
	for i, f := range output.Formats() {
		names[i] = string(f)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// String, Set and Type implement pflag.Value.
func (o *outputFlag) String() string { return string(o.Format) }

func (o *outputFlag) Set(format string) error {
	if !slices.Contains(output.Formats(), output.Format(format)) {
		return errors.New("use " + formats())
	}
	o.Format = output.Format(format)
	return nil
}

func (o *outputFlag) Type() string { return "format" }
