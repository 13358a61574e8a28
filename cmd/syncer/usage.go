package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/secretsync/syncer/internal/suggest"
)

// checkUsage refuses arguments that a command's usage line does not name, and a command
// line that lacks an argument or a required flag.
func checkUsage(cmd *cobra.Command, args []string) error {
	least, most := arguments(cmd.Use)
	var lacking []string
	var eager string // a flag that took the next flag for its value
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if repeatable, ok := f.Value.(pflag.SliceValue); ok {
			values = repeatable.GetSlice()
		}
		for _, value := range values {
			if namesFlag(cmd.Flags(), value) {
				eager = fmt.Sprintf("--%s takes a value, and took %s", f.Name, value)
			}
		}
	})
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed {
			lacking = append(lacking, "--"+f.Name)
		}
	})
	line := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
	switch {
	case eager != "":
		return fmt.Errorf("%s; see %s --help", eager, cmd.CommandPath())
	case len(args) > most && most == 0 && cmd.Flags().Lookup("file") != nil:
		return fmt.Errorf("the argument %q is not for %s; files are named by flags, see --help", args[0], cmd.CommandPath())
	case len(args) > most:
		return fmt.Errorf("the argument %q is not for %s; see %[2]s --help", args[most], cmd.CommandPath())
	case len(args) < least:
		return fmt.Errorf("an argument is missing: %s", line)
	case len(lacking) > 0:
		return fmt.Errorf("%s is missing; see %s --help", strings.Join(lacking, " and "), cmd.CommandPath())
	}
	return nil
}

// namesFlag reports whether a text is a flag, such as -f or --file.
func namesFlag(flags *pflag.FlagSet, text string) bool {
	if name, long := strings.CutPrefix(text, "--"); long {
		return flags.Lookup(name) != nil
	}
	return len(text) == 2 && text[0] == '-' && flags.ShorthandLookup(text[1:]) != nil
}

// arguments returns how many arguments a usage line asks for. "..." ends the name of an
// argument that may be repeated. Brackets, and the "|" between two forms of the command,
// make arguments optional.
func arguments(use string) (least, most int) {
	words := strings.Fields(use)[1:]
	for i, word := range words {
		switch {
		case word == "|":
			return 0, most
		case strings.HasPrefix(word, "-") || i > 0 && strings.HasPrefix(words[i-1], "-"): // a flag and its value
			continue
		case strings.Contains(word, "..."):
			most += 1 << 30
		}
		most++
		if !strings.HasPrefix(word, "[") {
			least++
		}
	}
	return least, most
}

// flagError words an error of the flags. It names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			return fmt.Errorf("unknown flag -%s in -%s; see %s --help", unknown.GetSpecifiedName(), letters, cmd.CommandPath())
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		best := suggest.Nearest(name, names)
		for _, n := range names {
			if best == "" && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n)) { // such as kubectl's --filename
				best = n
			}
		}
		if best != "" {
			return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, best)
		}
		return fmt.Errorf("unknown flag --%s; see %s --help", name, cmd.CommandPath())
	}
	if without, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value: %s", without.GetFlag().Name, without.GetFlag().Usage)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		why := invalid.Unwrap()
		if kind := invalid.GetFlag().Value.Type(); expected[kind] != "" {
			why = errors.New(expected[kind]) // and not what Go's parser says
		}
		return fmt.Errorf("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), why)
	}
	return err
}

// expected says what a flag's value must be, by its type.
var expected = map[string]string{
	"bool":     "use true or false",
	"duration": "use a duration such as 30s or 5m",
	"int":      "use an integer",
}
