package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// readSecret is a Secret of a manifest and what it says of its content.
type readSecret struct {
	*manifest.Secret
	content targets.SecretContent
}

// managed tells whether a Secret has anything to say to a provider.
func managed(s *manifest.Secret) bool { return s.Map || annotated(s.Annotations) }

// readSecrets reads all Secrets of the manifest; those that are not managed
// have no content.
func readSecrets(m *manifest.Manifest) ([]readSecret, config.Validation) {
	v := config.NewValidation(nil, nil)
	secrets := make([]readSecret, len(m.Secrets))
	for i, s := range m.Secrets {
		secrets[i].Secret = s
		if !managed(s) {
			continue
		}
		text, unread := s.ConjurMap()
		if unread != nil {
			v.Errors = append(v.Errors, problemAt(s, targets.ConjurMapKey+": "+unread.Error()))
		}
		content, warnings, err := targets.ParseSecret(s.Annotations, text, s.Map && unread == nil, "")
		for _, e := range eachError(err) {
			v.Errors = append(v.Errors, problemAt(s, e.Error()))
		}
		for _, w := range warnings {
			v.Warnings = append(v.Warnings, problemAt(s, w))
		}
		if s.Map && unread == nil && err == nil && len(content.Entries) == 0 {
			v.Warnings = append(v.Warnings, problemAt(s, targets.ConjurMapKey+": the map is empty; add \"key: id\""))
		}
		secrets[i].content = content
	}
	return secrets, v
}

// problemAt takes apart a message that begins with a place in the Secret and a
// colon.
func problemAt(s *manifest.Secret, message string) config.Problem {
	key, rest, _ := strings.Cut(message, ": ")
	return config.Problem{Key: s.String() + ": " + key, Message: rest}
}

// eachError gives the errors that err joins.
func eachError(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, eachError(e)...)
	}
	return all
}

// check tells what is wrong with the groups' formats, aliases and templates.
func (s readSecret) check() (problems []config.Problem) {
	for _, t := range s.content.Groups {
		place := "conjur.org/conjur-secrets."
		if t.Format == targets.FormatTemplate {
			place = "conjur.org/secret-file-template."
		}
		for _, e := range eachError(render.Check(t, t.Template.Inline)) {
			problems = append(problems, problemAt(s.Secret, place+t.Group+": "+e.Error()))
		}
	}
	return problems
}

// renderSecrets prints the Secrets of the manifest, all or none.
func (f *toolFlags) renderSecrets(cmd *cobra.Command, values string) error {
	if f.pod.manifest == "-" && values == "-" {
		return errors.New("-f and --values cannot both be standard input; name a file for one of the two")
	}
	secrets, err := f.loadSecrets(cmd)
	if err != nil {
		return err
	}
	o, err := newOffline(values, cmd.InOrStdin(), nil)
	if err != nil {
		return err
	}
	var ts []*targets.Target
	var owners []int // of ts, the place in secrets
	for i, s := range secrets {
		made, warnings := o.secretTargets(s)
		_ = printProblems(cmd.ErrOrStderr(), config.Validation{Warnings: warnings})
		for _, t := range made {
			ts, owners = append(ts, t), append(owners, i)
		}
	}
	results, err := o.renderAll(cmd.ErrOrStderr(), ts)
	if err != nil {
		return err
	}
	data := make([]map[string][]byte, len(secrets))
	for i, t := range ts {
		data[owners[i]] = addParts(data[owners[i]], t, results[i])
	}
	return printSecrets(cmd, f.output, secrets, data)
}

// loadSecrets reads and checks the Secrets of the manifest. Warnings, and if
// it is not valid its problems, go to standard error.
func (f *toolFlags) loadSecrets(cmd *cobra.Command) ([]readSecret, error) {
	m, err := f.pod.readManifest(cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	secrets, v := readSecrets(m)
	for _, s := range secrets {
		v.Errors = append(v.Errors, s.check()...)
	}
	if len(secrets) == 0 {
		v.Errors = append(v.Errors, config.Problem{Key: f.pod.manifest, Message: "there is no Secret in it"})
	}
	return secrets, printProblems(cmd.ErrOrStderr(), v)
}

// secretTargets makes of a Secret one target for its map, which has the form
// of a folder with a file for each data key, and one for each group. Their
// keys say where they are from.
func (o *offline) secretTargets(s readSecret) (ts []*targets.Target, warnings []config.Problem) {
	content, left := s.content.Expand(o.ids())
	for _, w := range left {
		warnings = append(warnings, problemAt(s.Secret, w))
	}
	if len(s.content.Entries) > 0 {
		ts = append(ts, &targets.Target{Key: targets.Key(s.String() + ": " + targets.ConjurMapKey), Entries: content.Entries, Format: targets.FormatDirectory})
	}
	for _, t := range content.Groups {
		named := *t
		named.Key = targets.Key(s.String() + ": " + t.Group)
		ts = append(ts, &named)
	}
	return ts, warnings
}

// addParts puts a target's result under its data keys.
func addParts(data map[string][]byte, t *targets.Target, result render.Result) map[string][]byte {
	if data == nil {
		data = map[string][]byte{}
	}
	for key, part := range result.Parts {
		if key == sinks.WholeFile {
			key = t.Group
		}
		data[key] = part.Bytes()
	}
	return data
}

// printSecrets prints each Secret, with its data, as a YAML document, or all as
// a List in JSON.
func printSecrets(cmd *cobra.Command, output string, secrets []readSecret, data []map[string][]byte) error {
	var documents []string
	var errs []error
	for i, s := range secrets {
		document, err := s.WithData(data[i])
		if err != nil {
			for _, e := range eachError(err) {
				errs = append(errs, problemAt(s.Secret, "data: "+e.Error()))
			}
		}
		documents = append(documents, string(document))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if output == outputJSON {
		return asList(cmd.OutOrStdout(), documents)
	}
	_, err := cmd.OutOrStdout().Write([]byte(strings.Join(documents, "---\n")))
	return err
}
