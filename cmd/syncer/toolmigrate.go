package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
)

// migration is what migrate prints with --output json.
type migration struct {
	Manifest string           `json:"manifest"`
	Notes    []config.Problem `json:"notes"`
	Warnings []config.Problem `json:"warnings"`
}

func newMigrateCommand() *cobra.Command {
	var f toolFlags
	var image string
	cmd := newToolCommand(&f, "migrate", "Put Syncer in the place of the Secrets Provider in a manifest", `Reads a manifest with workloads that run the Secrets Provider, checks every
setting as validate does, and prints the same text with Syncer's image in the
provider's containers: comments, order and everything else stay as they are.
Notes on what changes for the better, and on what to know, go to standard
error.

Exit status: 0, or 1 with nothing printed if a setting is not valid.`, 1,
		func(cmd *cobra.Command, _ []string) error {
			m, err := f.pod.readManifest(cmd.InOrStdin())
			if err != nil {
				return err
			}
			found, problems := f.pod.providers(m)
			problems = append(problems, secretsToMigrate(m)...)
			if len(found)+len(problems) == 0 {
				problems = append(problems, f.pod.nothing())
			}
			v := config.Validation{Errors: problems}
			var containers []*manifest.Container
			var notes []config.Problem
			for _, p := range found {
				one := f.validateProvider(p, false)
				prefix := p.workload.String() + ": "
				v.Errors = append(v.Errors, prefixed(prefix, one.Errors)...)
				v.Warnings = append(v.Warnings, prefixed(prefix, one.Warnings)...)
				containers = append(containers, p.container)
				notes = append(notes, prefixed(prefix, notesOn(p))...)
			}
			if len(v.Errors) > 0 {
				return printProblems(cmd.ErrOrStderr(), v)
			}
			text, err := m.WithImage(image, containers...)
			if err != nil {
				return err
			}
			if f.output == outputJSON {
				return printJSON(cmd.OutOrStdout(), migration{string(text), append([]config.Problem{}, notes...), append([]config.Problem{}, v.Warnings...)})
			}
			_ = printProblems(cmd.ErrOrStderr(), v) // there are only warnings
			for _, n := range notes {
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", n.Key+": "+n.Message)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		})
	cmd.Flags().StringVar(&image, "image", "secretsync/syncer:latest", "Syncer's image")
	f.pod.addTo(cmd)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// secretsToMigrate reports the Secrets that a provider fills.
func secretsToMigrate(m *manifest.Manifest) (problems []config.Problem) {
	for _, s := range m.Secrets {
		if s.Map {
			problems = append(problems, config.Problem{Key: s.String(), Message: "Secrets with a conjur-map are not available in this version yet"})
		}
	}
	return problems
}

// notesOn tells what differs for a workload once Syncer runs in it.
func notesOn(p provider) (notes []config.Problem) {
	note := func(key, message string) { notes = append(notes, config.Problem{Key: key, Message: message}) }
	setting := func(annotation, variable string) (value, key string) {
		if value, ok := p.workload.Annotations["conjur.org/"+annotation]; ok {
			return value, "conjur.org/" + annotation
		}
		return p.container.Env[variable].Value, variable
	}
	if value, key := setting("secrets-refresh-enabled", ""); value != "" && value != "true" {
		if on, err := strconv.ParseBool(value); err == nil && on {
			note(key, fmt.Sprintf("%q switches the refresh on; only the text true did so before", value))
		}
	}
	if value, key := setting("retry-interval-sec", "RETRY_INTERVAL_SEC"); value == "0" {
		note(key, "retries begin at once and come ever slower; 0 switched them off before")
	}
	if value, key := setting("secrets-refresh-interval", ""); value != "" {
		note(key, "an unchanged refresh is one conditional request without a value in its answer; the files are not touched, also after a restart")
	}
	if value, key := setting("remove-deleted-secrets-enabled", "REMOVE_DELETED_SECRETS"); value != "false" {
		note(key, "one variable that is gone takes away only the files that hold it, and only when Conjur has confirmed it twice")
	}
	for key, value := range p.workload.Annotations {
		group, ok := strings.CutPrefix(key, "conjur.org/secret-file-format.")
		if ok && value == "template" && p.workload.Annotations["conjur.org/secret-file-template."+group] == "" {
			note(key, "a changed template is rendered within a second, without a restart")
		}
		if ok && (value == "bash" || value == "dotenv") {
			note(key, "values with special characters are quoted so that they survive being read; plain ones look as before")
		}
	}
	if hook := strings.Join(p.container.PostStart, " "); strings.Contains(hook, "conjur-secrets-provided.sh") {
		note("lifecycle.postStart", "an image without a shell runs `syncer wait` instead of the script")
	}
	return notes
}
