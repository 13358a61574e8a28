package render

import (
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// placeholder replaces each value in the check of a template. The Secrets Provider
// uses the same text.
const placeholder = "REDACTED"

// templateSecret is an entry as templates see it in .SecretsArray and .SecretsMap.
type templateSecret struct{ Alias, Value string }

// templateData is the data of a template. The map's values are templateSecrets.
type templateData struct {
	SecretsArray []templateSecret
	SecretsMap   map[string]any
}

// runTemplate returns the output of the template called name for entries. It
// deducts its work from budget, unless that is nil.
func runTemplate(name, text string, entries []entry, budget *work) (secret.Value, error) {
	parsed, err := parseTemplate(name, text)
	if err != nil {
		return secret.Value{}, err
	}
	secrets := make([]templateSecret, 0, len(entries))
	sets := map[string][]templateVersion{}
	for _, e := range entries {
		if e.set != nil {
			sets[e.alias] = versionsOf(e.set)
		} else {
			secrets = append(secrets, templateSecret{e.alias, string(e.value)})
		}
	}
	r, data := newRun(secrets, sets)
	return parsed.execute(r, data, budget)
}

// checkTemplate runs a template with placeholders. all permits every other alias
// too. sets lists the aliases of sets.
func checkTemplate(name, text string, aliases, sets []string, all bool) error {
	parsed, err := parseTemplate(name, text)
	if err != nil {
		return err
	}
	if all {
		aliases = append(aliases, allAlias)
	}
	secrets := make([]templateSecret, len(aliases))
	for i, alias := range aliases {
		secrets[i] = templateSecret{alias, placeholder}
	}
	versions := map[string][]templateVersion{}
	for _, alias := range sets {
		versions[alias] = []templateVersion{{ID: placeholder, Primary: true}}
	}
	r, data := newRun(secrets, versions)
	content, err := parsed.execute(r, data, nil)
	switch {
	case err == nil:
	case all:
		return certainOfAll(err)
	case parsed.certain(err):
		return err
	}
	content.Wipe()
	return nil
}

// parsed is a parsed template, for a single run.
type parsed struct {
	name, text string
	trees      map[string]*parse.Tree
	used       map[string]bool // functions that text uses
	ofParts    bool            // its data are the parts of a version
}

func parseTemplate(name, text string) (*parsed, error) {
	if len(text) > targets.MaxTemplateText {
		return nil, fmt.Errorf("template: %s: its text has more than %d bytes", name, targets.MaxTemplateText)
	}
	if strings.Count(text, "{{") > maxActions {
		return nil, fmt.Errorf("template: %s: its text has more than %d actions", name, maxActions)
	}
	trees, err := parse.Parse(name, text, "", "", loadLibrary().known)
	if err != nil {
		return nil, withReplacement(err)
	}
	used, err := harden(name, trees)
	if err != nil {
		return nil, err
	}
	return &parsed{name: name, text: text, trees: trees, used: used}, nil
}

// run is one execution of a template.
type run struct {
	work    work
	depth   int // of templates that call templates
	secrets map[string]any
	sets    map[string][]templateVersion
	out     buffer
}

// newRun returns a run over secrets and sets, and its data.
func newRun(secrets []templateSecret, sets map[string][]templateVersion) (*run, templateData) {
	r := &run{work: work{left: maxWork}, secrets: make(map[string]any, len(secrets)), sets: sets}
	for _, s := range secrets {
		r.secrets[s.Alias] = s
	}
	return r, templateData{secrets, r.secrets}
}

// execute runs the template. It deducts its work from budget, unless that is nil.
func (p *parsed) execute(r *run, data any, budget *work) (content secret.Value, err error) {
	if budget != nil {
		r.work.left = min(maxWork, budget.left)
		defer func(before int) { budget.left -= before - r.work.left }(r.work.left)
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			err = safeError("template", panicked)
		}
		if err != nil {
			r.out.wipe()
			err = p.explain(err)
		}
	}()
	t := template.New(p.name).Option("missingkey=error").Funcs(r.hidden()).Funcs(r.functions(p.used))
	for name, tree := range p.trees {
		if _, err := t.AddParseTree(name, tree); err != nil {
			return secret.Value{}, err
		}
	}
	if err := t.Execute(r, data); err != nil {
		return secret.Value{}, err
	}
	return secret.New(r.out.b), nil
}

// Write receives the output of the template.
func (r *run) Write(b []byte) (int, error) {
	if len(r.out.b)+len(b) > maxResult {
		return 0, &limitError{fmt.Sprintf("it writes more than %d bytes", maxResult)}
	}
	r.out.raw(b)
	return len(b), nil
}

// hidden returns the functions that harden inserts into the template.
func (r *run) hidden() map[string]any {
	return map[string]any{
		stepFunc:   r.step,
		enterFunc:  r.enter,
		leaveFunc:  r.leave,
		emitFunc:   r.emit,
		secretFunc: r.namedSecret,
		truthFunc:  r.truth,
		failFunc:   func(message string) (string, error) { return "", &functionError{name: "fail", why: message} },
	}
}

func (r *run) step(cost int) string {
	r.work.spend(cost * stepWork)
	return ""
}

func (r *run) enter(cost int) string {
	if r.depth++; r.depth > maxNesting {
		panic(&limitError{fmt.Sprintf("more than %d templates call each other", maxNesting)})
	}
	return r.step(cost)
}

func (r *run) leave(int) string {
	r.depth--
	return ""
}

// emit returns the text of a value that the template prints. A nil value is an error,
// where text/template would print <no value>. So are lists and maps, because nothing reads
// the form that Go prints.
func (r *run) emit(v any) (string, error) {
	text, ok := scalar(v)
	switch {
	case v == nil:
		return "", &functionError{name: "print", why: "there is no value"}
	case !ok:
		return "", &functionError{"print", typeName(v) + " cannot be printed; name a part of it, or use range, join or toJson", true}
	}
	fits(1, len(text))
	r.work.spend(len(text))
	return text, nil
}

// truth passes the value of a condition on.
func (r *run) truth(v any) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, safeError("if", p)
		}
	}()
	return condition(v), nil
}

// secret returns the value of an alias. The error must not name the alias, because
// a template may compute it from a value.
func (r *run) secret(alias string) string {
	if s, ok := r.secrets[alias].(templateSecret); ok {
		return s.Value
	}
	panic(unknownAlias("the group has no such alias"))
}

// namedSecret is secret for an alias that the template's text contains.
func (r *run) namedSecret(alias string) (string, error) {
	s, ok := r.secrets[alias].(templateSecret)
	if !ok {
		return "", unknownAlias(fmt.Sprintf("the group has no alias %q", alias))
	}
	r.work.spend(len(s.Value))
	return s.Value, nil
}

// unknownAlias means that a template uses an alias that its group lacks.
type unknownAlias string

func (u unknownAlias) Error() string { return string(u) }
