package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/targets"
)

// The longest permitted aliases, in bytes, as with the Secrets Provider. The alias of a
// file has targets.MaxFileName.
const (
	maxYAMLAlias = 1024
	maxJSONAlias = 2 << 20
)

// aliasRule returns a function that describes the fault of an alias in the
// format, or returns "" for a valid alias. It returns false for an unknown format.
func aliasRule(format targets.Format) (func(alias string) string, bool) {
	switch format {
	case targets.FormatYAML:
		return yamlAlias, true
	case targets.FormatJSON:
		return jsonAlias, true
	case targets.FormatDotenv, targets.FormatBash:
		return variableAlias, true
	case targets.FormatProperties:
		return propertyAlias, true
	case targets.FormatJavaProperties:
		return javaPropertyAlias, true
	case targets.FormatEnvFile, targets.FormatKubernetesEnv:
		return environmentAlias, true
	case targets.FormatDirectory:
		return fileAlias, true
	case targets.FormatTemplate:
		return func(string) string { return "" }, true
	case targets.FormatJWKS, targets.FormatJWKSPublic:
		return func(string) string { return "it holds sets only, as in {keys: id}" }, true
	}
	return nil, false
}

func formatNames() string {
	return "yaml, json, dotenv, bash, properties, template, java-properties, env-file, kubernetes-env, directory, jwks, jwks-public"
}

// yamlAlias permits YAML 1.2's printable characters (c-printable).
func yamlAlias(alias string) string {
	switch {
	case alias == "":
		return "it is empty"
	case len(alias) > maxYAMLAlias:
		return "it is longer than 1024 bytes"
	case !utf8.ValidString(alias):
		return "it is not valid UTF-8"
	}
	for _, r := range alias {
		if !yamlPrintable(r) {
			return "it has a character that is not printable in YAML"
		}
	}
	return ""
}

func yamlPrintable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85, ' ' <= r && r <= '~':
		return true
	}
	return 0xA0 <= r && r <= 0xFFFD || r > 0xFFFF
}

// jsonAlias permits invalid UTF-8, as the Secrets Provider does. Invalid bytes
// become U+FFFD.
func jsonAlias(alias string) string {
	switch {
	case alias == "":
		return "it is empty"
	case len(alias) > maxJSONAlias:
		return "it is longer than 2097152 bytes"
	}
	for i := range len(alias) {
		if c := alias[i]; c < ' ' || c == 0x7F || c == '"' || c == '\\' {
			return "it has a quote, a backslash or a control character"
		}
	}
	return ""
}

// variableAlias permits the names of shell variables.
func variableAlias(alias string) string {
	if !nameOf(alias, "_", "_0123456789") {
		return "only letters of ASCII, digits and _ are allowed, and no digit comes first"
	}
	return ""
}

func propertyAlias(alias string) string {
	if !nameOf(alias, "_", "_.0123456789") {
		return "only letters of ASCII, digits, _ and . are allowed, and neither digit nor . comes first"
	}
	return ""
}

// environmentAlias applies Kubernetes' rule for names of environment variables.
func environmentAlias(alias string) string {
	if !nameOf(alias, "-._", "-._0123456789") {
		return "only letters of ASCII, digits, -, . and _ are allowed, and no digit comes first"
	}
	return ""
}

// nameOf reports whether s begins with a letter or a character of first, and
// continues with letters or characters of rest.
func nameOf(s, first, rest string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			continue
		}
		if i == 0 && strings.IndexByte(first, c) < 0 || strings.IndexByte(rest, c) < 0 {
			return false
		}
	}
	return true
}

// javaPropertyAlias permits any text, because keys can be escaped.
func javaPropertyAlias(alias string) string {
	switch {
	case alias == "":
		return "it is empty"
	case !utf8.ValidString(alias):
		return "it is not valid UTF-8"
	}
	return ""
}

// checkPaths reports file paths and modes that the format does not support, invalid
// paths, and paths that conflict with each other.
func checkPaths(format targets.Format, entries []targets.Entry) error {
	var errs []error
	fail := func(e targets.Entry, fault string) {
		errs = append(errs, fmt.Errorf("alias %q: %s", brief.Input(e.Alias), fault))
	}
	owner := map[string]string{} // path → alias of its entry
	for _, e := range entries {
		if (e.Path != "" || e.Mode != 0) && format != targets.FormatDirectory {
			fail(e, fmt.Sprintf("it has a path or a mode, and format %s makes one file of all; use format directory, or remove them", format))
			continue
		}
		if e.Path != "" {
			if fault := filePath(e.Path); fault != "" {
				fail(e, fault)
				continue
			}
		}
		if other, taken := owner[e.FilePath()]; taken && other != e.Alias {
			fail(e, fmt.Sprintf("its path %q is that of alias %q too; give one of the two another", brief.Input(e.FilePath()), brief.Input(other)))
			continue
		}
		owner[e.FilePath()] = e.Alias
	}
	for _, e := range entries {
		for dir := path.Dir(e.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if other, is := owner[dir]; is && owner[e.Path] == e.Alias {
				fail(e, fmt.Sprintf("its path %q is below %q, which is the file of alias %q; give one of the two another", brief.Input(e.Path), brief.Input(dir), brief.Input(other)))
			}
		}
	}
	return errors.Join(errs...)
}

// filePath returns the fault of the path of an entry's file, or "".
func filePath(text string) string {
	if path.IsAbs(text) {
		return fmt.Sprintf("the path %q is absolute; write it relative to the folder", brief.Input(text))
	}
	if strings.Count(text, "/") > targets.MaxFolders {
		return fmt.Sprintf("the path %q has more than %d folders", brief.Input(text), targets.MaxFolders)
	}
	for segment := range strings.SplitSeq(text, "/") {
		if fault := fileAlias(segment); fault != "" {
			return fmt.Sprintf("the path %q cannot be: %s", brief.Input(text), fault)
		}
	}
	return ""
}

// fileAlias permits every valid file name, except the names that the atomic swap of
// the folder reserves.
func fileAlias(alias string) string {
	switch {
	case alias == "" || alias == ".":
		return "it is not the name of a file"
	case strings.ContainsAny(alias, "/\x00"):
		return "the name of a file has no slash and no NUL"
	case strings.HasPrefix(alias, ".."), strings.HasPrefix(alias, ".syncer-"):
		return "names that begin with .. or .syncer- are reserved"
	case len(alias) > targets.MaxFileName:
		return "the name of a file is no longer than 255 bytes"
	}
	return ""
}

// allAlias represents the aliases of all variables in the check of a template, as
// with the Secrets Provider.
const allAlias = "*"

// checkAll reports whether a format can hold all variables. Their aliases are their
// ids.
func checkAll(format targets.Format) error {
	rule, ok := aliasRule(format)
	if !ok {
		return nil // another check reports it
	}
	if fault := rule("a/b"); fault != "" {
		return fmt.Errorf("alias \"*\" does not suit format %s: all variables have their ids for aliases, such as \"app/db/password\", but %s; use format yaml, json, java-properties or template, or list the variables", format, fault)
	}
	return nil
}

// certainOfAll returns err if it occurs for every set of variables. Otherwise it
// returns nil.
func certainOfAll(err error) error {
	var limit *limitError
	var alias unknownAlias
	var rule *ruleError
	var function *functionError
	switch {
	case errors.As(err, &alias):
		return fmt.Errorf("%w; with \"*\" an alias may be missing, so give this one a separate entry", err)
	case errors.As(err, &limit), errors.As(err, &function) && function.always:
		return err
	case errors.As(err, &rule):
		switch rule.kind {
		case undefined, wrongNumber, wrongLiteral:
			return err
		}
	}
	return nil
}

// CheckAlias returns nil if the format can hold an entry with this alias. The error
// names neither the format nor the alias.
func CheckAlias(format targets.Format, alias string) error {
	rule, ok := aliasRule(format)
	if !ok {
		return fmt.Errorf("unknown format; use one of %s", formatNames())
	}
	if fault := rule(alias); fault != "" {
		return errors.New(fault)
	}
	return nil
}
