package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// outputFlag is a flag for the form of a command's output.
type outputFlag struct {
	form  string
	forms []string
}

// addOutputFlag adds the flag --output to a command. The first form is the default.
func addOutputFlag(cmd *cobra.Command, forms ...string) *outputFlag {
	o := &outputFlag{form: forms[0], forms: forms}
	cmd.Flags().Var(o, "output", "the output format: "+o.list())
	return o
}

func (o *outputFlag) isJSON() bool { return o.form == "json" }

func (o *outputFlag) list() string { return strings.Join(o.forms, " or ") }

// String, Set and Type implement pflag.Value.
func (o *outputFlag) String() string { return o.form }

func (o *outputFlag) Set(form string) error {
	if !slices.Contains(o.forms, form) {
		return errors.New("use " + o.list())
	}
	o.form = form
	return nil
}

func (o *outputFlag) Type() string { return "form" }
