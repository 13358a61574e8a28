package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// newRotateCommands makes the commands that control an automatically rotated set.
func newRotateCommands() (all []*cobra.Command) {
	for verb, short := range map[string]string{
		"now":      "Create a new version now",
		"pause":    "Pause the rotation of a set",
		"resume":   "Resume the rotation of a paused set",
		"rollback": "Make the previous version the primary again, while it is valid",
		"abort":    "Cancel the pending version",
		"claim":    "Take over a set from another owner, or after the restore of a backup",
	} {
		var flags commandFlags
		cmd := &cobra.Command{
			Use: verb + " SET", Short: short,
			Long: short + ".\nThe command waits until the process that rotates the set answers, and prints why that process waits.\n\n" + commandStatus,
			RunE: func(cmd *cobra.Command, args []string) error {
				return flags.sendCommand(cmd, args[0], versions.Command{Verb: verb})
			},
		}
		flags.add(cmd)
		all = append(all, cmd)
	}
	return all
}

const commandStatus = `Exit status:
- 0 if the command was obeyed, or was sent with --no-wait
- 1 if it was rejected, replaced or not answered, or not sent because another one
  is pending`

// commandFlags determine how to send a command to the process that rotates a set.
type commandFlags struct {
	noWait, replace bool
	timeout         time.Duration
}

func (f *commandFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "send the command without waiting for an answer")
	cmd.Flags().BoolVar(&f.replace, "replace", false, "first withdraw a pending command")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "how long to wait for an answer")
}

// sendCommand sends a command to the process that rotates a set, and prints the result.
func (f commandFlags) sendCommand(cmd *cobra.Command, set string, c versions.Command) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	return withConjur(func(client *conjur.Client) error {
		now, err := client.Time(ctx)
		if err != nil {
			return err
		}
		if c.At = now; now.IsZero() {
			c.At = time.Now()
		}
		to := rotation.Set{Conjur: client, ID: set}
		if f.replace {
			withdrawn, err := to.Withdraw(ctx, c.At)
			if err != nil {
				return err
			}
			if withdrawn != "" {
				fmt.Fprintf(out, "withdrawn: %s\n", withdrawn)
			}
		}
		if f.noWait {
			if err := to.SendCommand(ctx, c); err != nil {
				return unsent(err)
			}
			_, err := fmt.Fprintf(out, "sent: %s; see syncer rotate status %s\n", c.Verb, set)
			return err
		}
		what, err := to.Command(ctx, c, f.timeout, func(why string) { fmt.Fprintf(cmd.ErrOrStderr(), "waits: %s\n", oneLine(why)) })
		if err != nil {
			return unsent(err)
		}
		_, err = fmt.Fprintf(out, "obeyed: %s\n", oneLine(what))
		return err
	})
}

// unsent says what to do about a command that was not executed.
func unsent(err error) error {
	if errors.Is(err, rotation.ErrPending) {
		return fmt.Errorf("%w; the command was not sent: wait until the other one is answered, or withdraw it with --replace", err)
	}
	return err
}
