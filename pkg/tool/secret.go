package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
	"github.com/secretsync/syncer/pkg/tool/manifest"
	"github.com/secretsync/syncer/pkg/tool/secretsprovider"
)

// readSecret is a Secret of a manifest, and its target.
type readSecret struct {
	*manifest.Secret
	target *targets.Target // nil: it has no settings for a provider
}

// managed reports whether a Secret has settings for a secrets provider.
func managed(s *manifest.Secret) bool { return s.Map || secretsprovider.Annotated(s.Annotations) }

// readSecrets reads all Secrets of the manifest. named contains the names of those that a
// provider must fill. The value is true if only the Secret itself defines its content.
func readSecrets(m *manifest.Manifest, named map[string]bool) ([]readSecret, config.Validation) {
	v := config.NewValidation(nil, nil)
	secrets := make([]readSecret, len(m.Secrets))
	for i, s := range m.Secrets {
		secrets[i].Secret = s
		if s.Label != "" && !s.Labelled {
			v.Warnings = append(v.Warnings, problem(s.Place(), targets.Fault{Place: targets.ManagedLabel, Why: fmt.Sprintf("the label is %q, and only \"true\" chooses the Secret", s.Label)}))
		}
		if s.Similar != "" {
			v.Warnings = append(v.Warnings, problem(s.Place(), targets.Fault{Place: s.Similar, Why: "this label does not choose the Secret; did you mean " + targets.ManagedLabel + "?"}))
		}
		if _, listed := named[s.Name]; s.Labelled && !managed(s) && !listed {
			v.Errors = append(v.Errors, problem(s.Place(), targets.Fault{Place: targets.ConjurMapKey, Why: "there is no such data key, and no group, though the label chooses the Secret; its keys are " + cmp.Or(strings.Join(s.Keys(), ", "), "none")}))
		}
		if !managed(s) && !named[s.Name] {
			continue
		}
		alone, listed := named[s.Name]
		secrets[i].target = targetOf(s, alone || !listed && !s.Labelled)
		for _, fault := range secrets[i].target.Secret.Faults {
			v.Errors = append(v.Errors, problem(s.Place(), fault))
		}
		for _, w := range secrets[i].target.Secret.Warnings {
			v.Warnings = append(v.Warnings, problem(s.Place(), w))
		}
		delivered := kubesecrets.NamedKeys(secrets[i].target)
		if set := slices.DeleteFunc(s.Keys(), func(key string) bool { return !delivered[key] }); len(set) > 0 {
			v.Warnings = append(v.Warnings, problem(s.Place(), targets.Fault{Place: strings.Join(set, ", "), Why: "both the manifest and Syncer set this data, so each deployment overwrites the values from Conjur; remove it from the manifest, or have Syncer create the Secret if its type requires it"}))
		}
		if s.Immutable {
			v.Errors = append(v.Errors, problem(s.Place(), targets.Fault{Place: "immutable", Why: "nothing can be put into a Secret that is immutable; remove it"}))
		}
	}
	return secrets, v
}

// targetOf makes the target of a Secret. A named Secret must define its content. So must
// a Secret without the label, because a provider cannot select it in another way.
func targetOf(s *manifest.Secret, named bool) *targets.Target {
	text, unread := s.ConjurMap()
	t := definitions.FromSecret(definitions.SecretDefinition{
		Namespace: s.Namespace, Name: s.Name, Annotations: s.Annotations,
		Map: text, HasMap: s.Map && unread == nil, Named: named && unread == nil,
	})
	switch {
	case unread != nil:
		t.Secret.Faults = append(t.Secret.Faults, targets.Fault{Place: targets.ConjurMapKey, Why: unread.Error()})
		t.Secret.Warnings = nil
	case s.Map && len(t.Secret.Faults) == 0 && len(t.Entries) == 0 && !t.Secret.HoldAll:
		t.Secret.Warnings = append(t.Secret.Warnings, targets.Fault{Place: targets.ConjurMapKey, Why: "the map is empty; add \"key: id\""})
	}
	return t
}

// checkGroups returns the problems of the groups' formats, aliases and templates. Unknown
// templates count as valid.
func (s readSecret) checkGroups(texts *templates) (problems []config.Problem) {
	if s.target == nil {
		return nil
	}
	for _, t := range s.target.Secret.Groups {
		text, err := texts.Text(context.Background(), t)
		if errors.Is(err, errUnknownTemplate) {
			continue
		}
		if err == nil {
			err = render.Check(t, text)
		}
		for _, e := range joined.Errors(err) {
			problems = append(problems, problem(s.Place(), targets.Fault{Place: placeOf(t), Why: e.Error()}))
		}
	}
	return problems
}

// placeOf is the annotation that most likely causes a problem of a group's output.
func placeOf(t *targets.Target) string {
	switch {
	case t.Format != targets.FormatTemplate:
		return "conjur.org/conjur-secrets." + t.Group
	case t.Template.Inline == "":
		return "conjur.org/secret-file-template-configmap." + t.Group
	}
	return "conjur.org/secret-file-template." + t.Group
}

// secrets reads and checks the Secrets of the manifest, and returns their templates. It
// writes the warnings and, if a Secret is invalid, the problems.
func (t *Tool) secrets() ([]readSecret, *templates, error) {
	m, err := t.readManifest()
	if err != nil {
		return nil, nil, err
	}
	texts := t.templates(m)
	secrets, v := readSecrets(m, nil)
	for _, s := range secrets {
		v.Errors = append(v.Errors, s.checkGroups(texts)...)
	}
	if len(secrets) == 0 {
		v.Errors = append(v.Errors, config.Problem{Key: t.manifestName(), Message: "there is no Secret in it"})
	}
	return secrets, texts, t.write(v)
}
