package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/manifest"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/targets"
)

// readSecret is a Secret of a manifest and the target that it is.
type readSecret struct {
	*manifest.Secret
	target *targets.Target // nil: it has nothing to say to a provider
}

// managed tells whether a Secret has anything to say to a provider.
func managed(s *manifest.Secret) bool { return s.Map || annotated(s.Annotations) }

// readSecrets reads all Secrets of the manifest. named are the names of those
// that a provider is told to fill; true where nothing but the Secret itself
// says with what.
func readSecrets(m *manifest.Manifest, named map[string]bool) ([]readSecret, config.Validation) {
	v := config.NewValidation(nil, nil)
	secrets := make([]readSecret, len(m.Secrets))
	for i, s := range m.Secrets {
		secrets[i].Secret = s
		if s.Label != "" && !s.Labelled {
			v.Warnings = append(v.Warnings, problemAt(s, fmt.Sprintf("%s: the label is %q, and only \"true\" chooses the Secret", manifest.ManagedLabel, s.Label)))
		}
		if _, told := named[s.Name]; s.Labelled && !managed(s) && !told {
			v.Errors = append(v.Errors, problemAt(s, fmt.Sprintf("%s: there is no such data key, and no group, though the label chooses the Secret; its keys are %s", targets.ConjurMapKey, cmp.Or(strings.Join(s.Keys(), ", "), "none"))))
		}
		if !managed(s) && !named[s.Name] {
			continue
		}
		var warnings []string
		alone, listed := named[s.Name]
		secrets[i].target, warnings = targetOf(s, alone || !listed && !s.Labelled)
		for _, fault := range secrets[i].target.Secret.Faults {
			v.Errors = append(v.Errors, problemAt(s, fault))
		}
		for _, w := range warnings {
			v.Warnings = append(v.Warnings, problemAt(s, w))
		}
		if s.Immutable {
			v.Errors = append(v.Errors, problemAt(s, "immutable: nothing can be put into a Secret that is immutable; remove it"))
		}
	}
	return secrets, v
}

// targetOf makes the target that a Secret is. One that is named must say what it
// is to hold, and so must one without the label, which has no other way to be
// chosen.
func targetOf(s *manifest.Secret, named bool) (t *targets.Target, warnings []string) {
	text, unread := s.ConjurMap()
	t, warnings = targets.FromSecret(targets.SecretDefinition{
		Namespace: s.Namespace, Name: s.Name, Annotations: s.Annotations,
		Map: text, HasMap: s.Map && unread == nil, Named: named && unread == nil,
	})
	switch {
	case unread != nil:
		t.Secret.Faults = append(t.Secret.Faults, targets.ConjurMapKey+": "+unread.Error())
		return t, nil
	case s.Map && len(t.Secret.Faults) == 0 && len(t.Entries) == 0 && !t.Secret.HoldAll:
		warnings = append(warnings, targets.ConjurMapKey+": the map is empty; add \"key: id\"")
	}
	return t, append(warnings, unknownAnnotations(s)...)
}

// unknownAnnotations warns of annotations that look like Syncer's and are not.
func unknownAnnotations(s *manifest.Secret) (warnings []string) {
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		switch {
		case !strings.HasPrefix(key, "conjur.org/") || targets.KnownAnnotation(key):
		case key == manifest.ManagedLabel:
			warnings = append(warnings, key+": not an annotation but a label; ignored")
		default:
			warnings = append(warnings, key+": not an annotation of a Secret; ignored")
		}
	}
	return warnings
}

// problemAt takes apart a message that begins with a place in the Secret and a
// colon.
func problemAt(s *manifest.Secret, message string) config.Problem {
	key, rest, _ := strings.Cut(message, ": ")
	return config.Problem{Key: s.String() + ": " + key, Message: rest}
}

// check tells what is wrong with the groups' formats, aliases and templates.
// Templates that are not known count as right.
func (s readSecret) check(templates templateTexts) (problems []config.Problem) {
	if s.target == nil {
		return nil
	}
	for _, t := range s.target.Secret.Groups {
		text, err := templates(t)
		if errors.Is(err, errUnknownTemplate) {
			continue
		}
		if err == nil {
			err = render.Check(t, text)
		}
		for _, e := range eachError(err) {
			problems = append(problems, problemAt(s.Secret, placeOf(t)+": "+e.Error()))
		}
	}
	return problems
}

// placeOf is the annotation that a fault in what a group makes is most likely
// about.
func placeOf(t *targets.Target) string {
	switch {
	case t.Format != targets.FormatTemplate:
		return "conjur.org/conjur-secrets." + t.Group
	case t.Template.Inline == "":
		return "conjur.org/secret-file-template-configmap." + t.Group
	}
	return "conjur.org/secret-file-template." + t.Group
}

// secretsOf reads and checks the Secrets of the manifest, and gives the
// templates that go with them. Warnings, and if it is not valid its problems,
// go to standard error.
func (f *toolFlags) secretsOf(cmd *cobra.Command) ([]readSecret, templateTexts, error) {
	m, err := f.pod.readManifest(cmd.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	templates := manifestTemplates(m, f.templatesFolder())
	secrets, v := readSecrets(m, nil)
	for _, s := range secrets {
		v.Errors = append(v.Errors, s.check(templates)...)
	}
	if len(secrets) == 0 {
		v.Errors = append(v.Errors, config.Problem{Key: inputName(f.pod.manifest), Message: "there is no Secret in it"})
	}
	return secrets, templates, printProblems(cmd.ErrOrStderr(), v)
}

// templatesFolder is the folder of templates, if one was named.
func (f *toolFlags) templatesFolder() fs.FS {
	if !f.pod.templates {
		return nil
	}
	return os.DirFS(f.sources.TemplatesDir)
}

// renderSecrets prints the Secrets of the manifest, all or none.
func (f *toolFlags) renderSecrets(cmd *cobra.Command, values string) error {
	secrets, templates, err := f.secretsOf(cmd)
	if err != nil {
		return err
	}
	o, err := newOffline(values, cmd.InOrStdin(), templates)
	if err != nil {
		return err
	}
	var ts []*targets.Target
	var owners []int // of ts, the place in secrets
	for i, s := range secrets {
		if s.target != nil {
			ts, owners = append(ts, o.named(cmd, s)), append(owners, i)
		}
	}
	results, err := o.renderAll(cmd.ErrOrStderr(), ts)
	if err != nil {
		return err
	}
	data := make([]map[string][]byte, len(secrets))
	for i, result := range results {
		data[owners[i]] = map[string][]byte{}
		for key, part := range result.Parts {
			data[owners[i]][key] = part.Bytes()
		}
	}
	return printSecrets(cmd, f.output, secrets, data)
}

// named gives the target of a Secret with all variables in it and a key that
// says where it is from, and warns of variables that have no data key.
func (o *offline) named(cmd *cobra.Command, s readSecret) *targets.Target {
	named := *s.target
	named.Key = targets.Key(s.String())
	t := o.expand(cmd.ErrOrStderr(), []*targets.Target{&named})[0]
	var warnings []config.Problem
	for _, w := range t.Secret.LeftOut {
		warnings = append(warnings, problemAt(s.Secret, w))
	}
	_ = printProblems(cmd.ErrOrStderr(), config.Validation{Warnings: warnings})
	return t
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
