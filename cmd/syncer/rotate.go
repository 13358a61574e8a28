package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

func newRotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Rotate key sets, step by step or by configuration",
		Long: `A key set is one variable with all versions of a key. To rotate it by hand:

    syncer rotate init apps/shop/jwt --random 32
    syncer rotate add apps/shop/jwt --random 32
    syncer rotate promote apps/shop/jwt --ask http://10.0.0.7:8080/keys --ask …
    syncer rotate retire apps/shop/jwt 20261122t013907 --ask …

The connection to Conjur comes from the environment (CONJUR_APPLIANCE_URL,
CONJUR_ACCOUNT, CONJUR_AUTHN_LOGIN, …). See docs/keysets.md.`,
	}
	cmd.AddCommand(newRotateInit(),
		newRotateMake("add", "Add a version, which all consumers receive in addition to the primary", rotation.Manual.Add),
		newRotatePromote(), newRotateRetire(), newRotateStatus(), newRotateCheck(), newRotateRun())
	cmd.AddCommand(newRotateCommands()...)
	for _, sub := range cmd.Commands() {
		if _, most := arguments(sub.Use); most > 0 {
			sub.ValidArgsFunction = completer(completer(setsInFile).first).complete
		}
	}
	return cmd
}

// manually calls do with a set in the Conjur that the environment names.
func manually(set string, do func(rotation.Manual) error) error {
	return withConjur(func(client *conjur.Client) error {
		return do(rotation.Manual{Set: rotation.Set{Conjur: client, ID: set}, Now: time.Now})
	})
}

// commandInstead handles the error of a manual step. If another process rotates the set, or the
// set is unreadable here, it sends a forced step to that process as a command.
func (f *gateFlags) commandInstead(cmd *cobra.Command, h rotation.Manual, err error, verb, id string) error {
	theirs := errors.Is(err, rotation.ErrOwned) || errors.Is(err, rotation.ErrUndeclared) || errors.Is(err, rotation.ErrForbidden)
	if !theirs || !f.Force {
		return err
	}
	if f.Reason == "" {
		return errors.New("--force needs a --reason, which the set's log keeps")
	}
	return f.sendCommand(cmd, h.ID, versions.Command{Verb: verb, Version: id, Reason: f.Reason})
}

// newRotateInit makes the command that starts a manually rotated set, or prints the
// requirements of automatically rotated sets.
func newRotateInit() *cobra.Command {
	var file string
	cmd := newRotateMake("init", "Create a set whose first version is the primary; with --config, print the policy of all sets of a file, and the rights that they need outside", rotation.Manual.Init)
	manually := cmd.RunE
	cmd.Use = "init SET | --config FILE"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.Flags().Changed("output") {
			return errors.New("--output is for one set; a policy has one form")
		}
		if len(args) == 0 {
			return printPolicy(file, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		return manually(cmd, args)
	}
	addConfigFlag(cmd, &file)
	return cmd
}

func newRotateMake(name, short string, do func(rotation.Manual, context.Context, generate.Config) (string, error)) *cobra.Command {
	var c generate.Config
	var password bool
	var alphabet, htpasswd, subject string
	var length int
	var format *outputFlag
	cmd := &cobra.Command{
		Use: name + " SET", Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if password {
				c.Password = &generate.Password{Length: length, Alphabet: alphabet}
			}
			if htpasswd != "" {
				c.Htpasswd = &generate.Password{User: htpasswd, Length: length, Alphabet: alphabet}
			}
			if subject != "" {
				c.X509 = &generate.X509{Subject: subject}
			}
			return manually(args[0], func(h rotation.Manual) error {
				id, err := do(h, cmd.Context(), c)
				switch {
				case err != nil:
					return err
				case format.ForPrograms():
					return format.Write(cmd.OutOrStdout(), map[string]string{"set": h.ID, "version": id})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&c.Random, "random", 0, "generate this number of random bytes")
	flags.BoolVar(&password, "password", false, "generate a password")
	flags.StringVar(&alphabet, "alphabet", "", "the password's characters (default letters and digits)")
	flags.IntVar(&length, "length", 0, "the password's length (default 32)")
	flags.StringVar(&htpasswd, "htpasswd", "", "generate a password for this user, and its htpasswd line")
	flags.IntVar(&c.RSA, "rsa", 0, "generate an RSA key pair of this number of bits")
	flags.StringVar(&c.ECDSA, "ecdsa", "", "generate an ECDSA key pair on P-256, P-384 or P-521")
	flags.BoolVar(&c.Ed25519, "ed25519", false, "generate an Ed25519 key pair")
	flags.BoolVar(&c.SSH, "ssh", false, "generate a key pair for OpenSSH")
	flags.StringVar(&subject, "x509", "", "generate a self-signed certificate with this common name, valid for 90 days")
	flags.BoolVar(&c.UUID, "uuid", false, "generate a UUID")
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

// gateFlags are the flags for the condition that opens a gate.
type gateFlags struct {
	rotation.Gate
	commandFlags
	ask  []string
	wait time.Duration // if ask is not set
}

func (f *gateFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.ask, "ask", nil, "the URL at which a consumer reports its keys; repeat it for all consumers")
}

func (f *gateFlags) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Force, "force", false, "continue although the gate is closed")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "the reason, which the set's log keeps")
	f.commandFlags.add(cmd)
}

// gate returns the gate of a set according to the flags.
func (f *gateFlags) gate(set string) (rotation.Gate, error) {
	config := consumers.Config{Set: set, Ask: f.ask, Now: time.Now}
	if len(f.ask) == 0 {
		config.Wait = f.wait
	}
	c, err := consumers.New(config)
	f.Consumers = c
	return f.Gate, err
}

func newRotatePromote() *cobra.Command {
	var flags gateFlags
	cmd := &cobra.Command{
		Use: "promote SET", Short: "Make the added version the primary if every consumer has it",
		RunE: func(cmd *cobra.Command, args []string) error {
			gate, err := flags.gate(args[0])
			if err != nil {
				return err
			}
			return manually(args[0], func(h rotation.Manual) error {
				id, err := h.Promote(cmd.Context(), gate)
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is the primary\n", id)
				}
				return flags.commandInstead(cmd, h, err, "promote", id)
			})
		},
	}
	flags.add(cmd)
	flags.addForce(cmd)
	cmd.Flags().DurationVar(&flags.wait, "wait", 3*time.Minute, "without --ask, the minimum time since the version was added")
	return cmd
}

func newRotateRetire() *cobra.Command {
	var flags gateFlags
	cmd := &cobra.Command{
		Use: "retire SET ID", Short: "Remove a version if no consumer uses it",
		RunE: func(cmd *cobra.Command, args []string) error {
			gate, err := flags.gate(args[0])
			if err != nil {
				return err
			}
			return manually(args[0], func(h rotation.Manual) error {
				err := h.Retire(cmd.Context(), args[1], gate)
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is retired\n", args[1])
				}
				return flags.commandInstead(cmd, h, err, "retire", args[1])
			})
		},
	}
	flags.add(cmd)
	flags.addForce(cmd)
	cmd.Flags().DurationVar(&flags.Keep, "keep", 24*time.Hour, "the minimum time since another version became the primary; use the maximum lifetime of a token")
	return cmd
}

func newRotateStatus() *cobra.Command {
	var format *outputFlag
	var file string
	cmd := &cobra.Command{
		Use: "status SET... | --config FILE", Short: "Show the versions of sets without their values; with --config, show what each set of a file waits for",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && file == "" {
				return errNoSet
			}
			if len(args) == 0 {
				return lookAtSets(cmd.Context(), file, cmd.OutOrStdout(), format.Format)
			}
			reports := []rotation.Report{}
			for _, set := range args {
				err := manually(set, func(h rotation.Manual) error {
					reports = append(reports, h.Status(cmd.Context()))
					return nil
				})
				if err != nil {
					return err
				}
			}
			return printReports(cmd.OutOrStdout(), reports, format.Format)
		},
	}
	addConfigFlag(cmd, &file)
	format = addOutputFlag(cmd, output.Text)
	return cmd
}

// printReports prints the reports, and returns an error if a set has a problem.
func printReports(out io.Writer, reports []rotation.Report, format output.Format) error {
	var broken error
	table := terminal.Columns(out)
	fmt.Fprintln(table, "SET\tVERSION\tSTATE\tFOR\tPARTS")
	for _, r := range reports {
		if r.Problem != "" {
			fmt.Fprintf(table, "%s\t%s\n", r.Set, oneLine(r.Problem))
			broken = errLogged
		}
		for _, v := range r.Versions {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%v\n", r.Set, v.ID, v.State, brief.Duration(time.Since(v.Since).Round(time.Second)), v.Parts)
		}
	}
	if format.ForPrograms() {
		return errors.Join(format.Write(out, reports), broken)
	}
	return errors.Join(table.Flush(), broken)
}

// oneLine makes a text from another author safe for one line on a terminal.
func oneLine(text string) string {
	return terminal.Plain(strings.ReplaceAll(text, "\n", "; "))
}

func newRotateCheck() *cobra.Command {
	var flags gateFlags
	var file string
	var format *outputFlag
	cmd := &cobra.Command{
		Use: "check SET | --config FILE", Short: "List everything that prevents the rotation of a set, or of all sets of a file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && file == "" {
				return errNoSet
			}
			if len(args) == 0 {
				return checkSets(cmd.Context(), file, cmd.OutOrStdout(), format.Format)
			}
			gate, err := flags.gate(args[0])
			if err != nil {
				return err
			}
			return manually(args[0], func(h rotation.Manual) error {
				found := map[string][]string{args[0]: h.Check(cmd.Context(), gate)}
				return printChecks(cmd.OutOrStdout(), nil, found, args[0]+" can be rotated", format.Format)
			})
		},
	}
	flags.add(cmd)
	addConfigFlag(cmd, &file)
	format = addOutputFlag(cmd, output.Text)
	return cmd
}
