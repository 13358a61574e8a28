package definitions

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/targets"
)

// The annotations of a Kubernetes Secret that define a group; each ends in the group's
// name. They equal the annotations of a Pod for its files.
const (
	groupSecrets     = "conjur.org/conjur-secrets."
	groupPolicyPath  = "conjur.org/conjur-secrets-policy-path."
	groupFormat      = "conjur.org/secret-file-format."
	groupReaders     = "conjur.org/dotenv-readers."
	groupTemplate    = "conjur.org/secret-file-template."
	groupConfigMap   = "conjur.org/secret-file-template-configmap."
	groupPath        = "conjur.org/secret-file-path."
	groupPermissions = "conjur.org/secret-file-permissions."
)

// parseSecret reads the map of a Kubernetes Secret in a namespace, if hasMap is true, and
// the groups that its annotations define. A group without format has the format template.
// A group without both is omitted with a warning, as in the Secrets Provider. A template
// in a ConfigMap must be in the same namespace.
//
// Faulty parts are not in the content.
//
// The account is the account for ParseEntries.
func parseSecret(namespace string, annotations map[string]string, conjurMap string, hasMap bool, account string) *secretParser {
	p := &secretParser{namespace: namespace, annotations: annotations, account: account, keys: map[string]bool{}}
	if hasMap {
		m := parseMap(conjurMap, account)
		p.report(targets.ConjurMapKey, m.warnings, errors.Join(m.errs...))
		p.entries, p.hold, p.holdAll = m.entries, m.faulty, m.unsure
		for _, e := range m.entries {
			p.keys[e.Alias] = true
		}
	}
	for _, group := range groupNames(annotations) {
		if t := p.group(group); t != nil {
			p.groups = append(p.groups, t)
		} else {
			p.hold = append(p.hold, group)
		}
	}
	slices.Sort(p.hold)
	p.hold = slices.Compact(p.hold)
	return p
}

// groupNames lists the groups in all annotations, sorted.
func groupNames(annotations map[string]string) []string {
	named := map[string]bool{}
	for key := range annotations {
		for _, prefix := range groupPrefixes() {
			if group, ok := strings.CutPrefix(key, prefix); ok {
				named[group] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(named))
}

func groupPrefixes() []string {
	return []string{groupSecrets, groupPolicyPath, groupFormat, groupReaders, groupTemplate, groupConfigMap, groupPath, groupPermissions}
}

// unknownAnnotations warns of annotations of a Kubernetes Secret that resemble Syncer's but
// have no effect.
func unknownAnnotations(annotations map[string]string) (warnings []targets.Fault) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		switch {
		case !targets.Defines(key), key == restartWorkloads, key == pullSecretFor:
		case slices.ContainsFunc(groupPrefixes(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }):
		case key == targets.ManagedLabel:
			warnings = append(warnings, targets.Fault{Place: key, Why: "not an annotation but a label; ignored"})
		default:
			warnings = append(warnings, targets.Fault{Place: key, Why: "not an annotation of a Secret; ignored"})
		}
	}
	return warnings
}

// secretParser finds the content that a Kubernetes Secret defines for its data.
type secretParser struct {
	namespace   string
	annotations map[string]string
	account     string
	keys        map[string]bool // of the map

	// entries are the entries of the map under ConjurMapKey; an alias is a data key.
	entries []targets.Entry
	// groups each make the value of one data key, which is the group's name. They are in
	// ascending order of the names. They have no Key and no File. Their templates are
	// inline or in ConfigMaps.
	groups []*targets.Target
	// hold and holdAll are those of targets.Secret.
	hold             []string
	holdAll          bool
	faults, warnings []targets.Fault
}

func (p *secretParser) fail(key, format string, args ...any) {
	p.faults = append(p.faults, targets.Fault{Place: key, Why: fmt.Sprintf(format, clipped(args)...)})
}

func (p *secretParser) warn(key, format string, args ...any) {
	p.warnings = append(p.warnings, targets.Fault{Place: key, Why: fmt.Sprintf(format, args...)})
}

// report adds the results of another parser at key.
func (p *secretParser) report(key string, warnings []string, err error) {
	for _, w := range warnings {
		p.warn(key, "%s", w)
	}
	for _, e := range joined.Errors(err) {
		p.fail(key, "%v", e)
	}
}

// group makes the target of one group. It returns nil for a faulty group, or for a name
// that is not a group.
func (p *secretParser) group(group string) *targets.Target {
	secrets, ok := p.annotations[groupSecrets+group]
	if !ok {
		p.stray(group)
		return nil
	}
	format, inline, ref := p.annotations[groupFormat+group], p.annotations[groupTemplate+group], p.annotations[groupConfigMap+group]
	if format == "" && inline == "" && ref == "" {
		p.warn(groupSecrets+group, "the group is skipped; give it a template by %s or a format by %s", groupTemplate+group, groupFormat+group)
		return nil
	}
	before := len(p.faults)
	p.dataKey(group)
	t := &targets.Target{Group: group, Format: p.format(group, format, inline+ref)}
	if t.Format == targets.FormatTemplate {
		t.Template = p.template(group, inline, ref)
	}
	if readers := p.annotations[groupReaders+group]; readers != "" {
		t.DotenvReaders = ParseDotenvReaders(readers)
	}
	if err := t.CheckDotenvReaders(); err != nil {
		p.fail(groupReaders+group, "%v", err)
	}
	entries, warnings, err := ParseEntries(secrets, p.account)
	p.report(groupSecrets+group, warnings, err)
	t.Entries = WithPolicyPath(entries, p.annotations[groupPolicyPath+group])
	for _, prefix := range []string{groupPath, groupPermissions} {
		if _, ok := p.annotations[prefix+group]; ok {
			p.warn(prefix+group, "ignored; the group makes a data key, not a file")
		}
	}
	if len(p.faults) > before {
		return nil
	}
	return t
}

// ParseDotenvReaders reads names with commas between them.
func ParseDotenvReaders(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// dataKey checks that the group's name can be a separate data key.
func (p *secretParser) dataKey(group string) {
	if fault := targets.DataKeyFault(group); fault != "" {
		p.fail(groupSecrets+group, "the data key %q %s; give the group another name", group, fault)
	} else if p.keys[group] {
		p.fail(groupSecrets+group, "the data key %q is also in %s; give one of the two another name", group, targets.ConjurMapKey)
	}
}

// template finds the location of a group's template.
func (p *secretParser) template(group, inline, ref string) targets.Template {
	switch {
	case ref == "":
		return targets.Template{Inline: inline}
	case inline != "":
		p.fail(groupConfigMap+group, "the group has a template in %s too; remove one of the two", groupTemplate+group)
		return targets.Template{}
	}
	key, err := ParseConfigMapRef(ref, group, p.namespace)
	if err != nil {
		p.fail(groupConfigMap+group, "%v", err)
	}
	return targets.Template{ConfigMap: key}
}

// format finds a group's format and checks that it matches the template, given as its
// text or its location.
func (p *secretParser) format(group, name, template string) targets.Format {
	format, key := targets.Format(name), groupFormat+group
	switch {
	case name == "":
		return targets.FormatTemplate
	case format == targets.FormatDirectory:
		p.fail(key, "the format directory makes many files, and a data key holds one; use another format, or %s", targets.ConjurMapKey)
	case !slices.Contains(targets.Formats(), format):
		p.fail(key, "unknown format %q; use one of %s", name, dataFormats())
	case format == targets.FormatTemplate && template == "":
		p.fail(key, "the format template needs a template; write it in %s, or name a ConfigMap by %s", groupTemplate+group, groupConfigMap+group)
	case format != targets.FormatTemplate && template != "":
		p.warnUnused(group, format)
	}
	return format
}

// warnUnused warns of the templates of a group whose format uses none.
func (p *secretParser) warnUnused(group string, format targets.Format) {
	for _, prefix := range []string{groupTemplate, groupConfigMap} {
		if p.annotations[prefix+group] != "" {
			p.warn(prefix+group, "not used by the format %s; set the format to template or remove it", format)
		}
	}
}

// dataFormats lists the formats that produce one value.
func dataFormats() string {
	var names []string
	for _, f := range targets.Formats() {
		if f != targets.FormatDirectory {
			names = append(names, string(f))
		}
	}
	return strings.Join(names, ", ")
}

// stray warns of annotations of an undefined group.
func (p *secretParser) stray(group string) {
	for _, prefix := range groupPrefixes() {
		if _, ok := p.annotations[prefix+group]; ok {
			p.warn(prefix+group, "there is no group %q; define it by %s", group, groupSecrets+group)
		}
	}
}
