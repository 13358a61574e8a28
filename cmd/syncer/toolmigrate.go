package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
)

// migration is what migrate tells, and prints with --output json.
type migration struct {
	Manifest string           `json:"manifest,omitempty"` // none when there are errors
	Notes    []config.Problem `json:"notes"`
	config.Validation
}

func newMigrateCommand() *cobra.Command {
	var f toolFlags
	var image string
	cmd := newToolCommand(&f, "migrate", "Put Syncer in the place of the Secrets Provider in a manifest", `Reads a manifest with workloads that run the Secrets Provider, checks every
setting as validate does, and prints the same text with Syncer's image in the
provider's containers: comments, order and everything else stay as they are.
Secrets with a conjur-map or groups are checked too. Warnings of what is to be
done by hand, such as rights that the service account lacks, and of what could
not be checked go to standard error first, and then notes on what changes for
the better and on what to know.

With --output json standard output is an object with the lists "errors",
"warnings" and "notes" and, without errors, the text as "manifest".

Exit status: 0, or 1 with no manifest printed if a setting is not valid.`, 1,
		func(cmd *cobra.Command, _ []string) error {
			m, err := f.pod.readManifest(cmd.InOrStdin())
			if err != nil {
				return err
			}
			result, err := f.migrate(m, image)
			if err != nil {
				return err
			}
			return printMigration(cmd, f.output, result)
		})
	cmd.Flags().StringVar(&image, "image", defaultImage, "Syncer's image")
	f.pod.addTo(cmd)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// migrate checks everything and, if nothing is wrong, replaces the images.
func (f *toolFlags) migrate(m *manifest.Manifest, image string) (migration, error) {
	c := f.checkManifest(m, false, true)
	result := migration{Notes: []config.Problem{}}
	var containers []*manifest.Container
	for _, p := range c.providers {
		prefix := p.workload.String() + ": "
		c.add(config.Validation{Errors: prefixed(prefix, ownCommand(p.container))})
		result.Notes = append(result.Notes, prefixed(prefix, notesOn(p))...)
		containers = append(containers, p.container)
	}
	for _, s := range m.Secrets {
		result.Notes = append(result.Notes, notesOnSecret(s)...)
	}
	must, better := notesOnRights(m, c.providers)
	result.Notes = append(result.Notes, better...)
	result.Validation = c.Validation
	result.Warnings = slices.Concat(must, unchecked(c.providers), result.Warnings)
	if len(result.Errors) > 0 {
		return result, nil
	}
	text, err := m.WithImage(image, containers...)
	result.Manifest = string(text)
	return result, err
}

// unchecked warns of what decides how Conjur is reached and stands in a ConfigMap
// or a Secret that is not in the manifest.
func unchecked(found []provider) (warnings []config.Problem) {
	for _, p := range found {
		var names []string
		for _, name := range []string{"CONJUR_APPLIANCE_URL", "CONJUR_AUTHN_URL", "CONJUR_ACCOUNT"} {
			if p.unknown(name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			warnings = append(warnings, config.Problem{Key: p.workload.String() + ": " + strings.Join(names, ", "),
				Message: "not checked, as the manifest has no value; add the ConfigMap or the Secret that has it"})
		}
	}
	return warnings
}

// ownCommand reports a command that the image of the Secrets Provider has and
// Syncer's has not.
func ownCommand(c *manifest.Container) []config.Problem {
	if len(c.Command) == 0 || path.Base(c.Command[0]) == "syncer" {
		return nil
	}
	return []config.Problem{{Key: "command", Message: fmt.Sprintf("the container %s has a command of its own, which Syncer's image may not have; remove it, so that the image's is used", c.Name)}}
}

func printMigration(cmd *cobra.Command, output string, m migration) error {
	if output == outputJSON {
		if err := printJSON(cmd.OutOrStdout(), m); err != nil {
			return err
		}
		if len(m.Errors) > 0 {
			return errLogged
		}
		return nil
	}
	if err := printProblems(cmd.ErrOrStderr(), m.Validation); err != nil {
		return err
	}
	for _, n := range m.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", n.Key+": "+n.Message)
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), m.Manifest)
	return err
}
