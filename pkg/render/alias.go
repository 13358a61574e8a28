package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/targets"
)

// The longest aliases, in bytes, as the Secrets Provider has them; a file name
// is limited by the file systems of Linux.
const (
	maxYAMLAlias = 1024
	maxJSONAlias = 2 << 20
	maxFileName  = 255
)

// aliasRule finds the function that says what is wrong with an alias in a
// format, "" when nothing is; false when there is no such format.
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
	case targets.FormatEnvFile:
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
	return "yaml, json, dotenv, bash, properties, template, java-properties, env-file, directory, jwks, jwks-public"
}

// yamlAlias allows YAML 1.2's printable characters (c-printable).
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

// jsonAlias takes invalid UTF-8, as the Secrets Provider does; such bytes
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

// variableAlias allows the names of shell variables.
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

// environmentAlias is Kubernetes' rule for the name of an environment
// variable.
func environmentAlias(alias string) string {
	if !nameOf(alias, "-._", "-._0123456789") {
		return "only letters of ASCII, digits, -, . and _ are allowed, and no digit comes first"
	}
	return ""
}

// nameOf reports whether s is a letter or one of first, and then letters or any
// of rest.
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

// javaPropertyAlias takes all text, since keys can be escaped.
func javaPropertyAlias(alias string) string {
	switch {
	case alias == "":
		return "it is empty"
	case !utf8.ValidString(alias):
		return "it is not valid UTF-8"
	}
	return ""
}

// checkPaths reports paths and modes of files where a format has none, paths that
// are none, and files that stand in each other's way.
func checkPaths(format targets.Format, entries []targets.Entry) error {
	var errs []error
	fail := func(e targets.Entry, fault string) {
		errs = append(errs, fmt.Errorf("alias %q: %s", clip(e.Alias), fault))
	}
	owner := map[string]string{} // path → the alias of its entry
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
			fail(e, fmt.Sprintf("its path %q is that of alias %q too; give one of the two another", clip(e.FilePath()), clip(other)))
			continue
		}
		owner[e.FilePath()] = e.Alias
	}
	for _, e := range entries {
		for dir := path.Dir(e.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if other, is := owner[dir]; is && owner[e.Path] == e.Alias {
				fail(e, fmt.Sprintf("its path %q is below %q, which is the file of alias %q; give one of the two another", clip(e.Path), clip(dir), clip(other)))
			}
		}
	}
	return errors.Join(errs...)
}

// filePath says what is wrong with the path of an entry's file; "": nothing.
func filePath(text string) string {
	if path.IsAbs(text) {
		return fmt.Sprintf("the path %q is absolute; write it relative to the folder", clip(text))
	}
	for segment := range strings.SplitSeq(text, "/") {
		if fault := fileAlias(segment); fault != "" {
			return fmt.Sprintf("the path %q cannot be: %s", clip(text), fault)
		}
	}
	return ""
}

// fileAlias allows all that the name of a file can be, but for the names that
// belong to the mechanism which switches the whole set.
func fileAlias(alias string) string {
	switch {
	case alias == "" || alias == ".":
		return "it is not the name of a file"
	case strings.ContainsAny(alias, "/\x00"):
		return "the name of a file has no slash and no NUL"
	case strings.HasPrefix(alias, ".."), strings.HasPrefix(alias, ".syncer-"):
		return "names that begin with .. or .syncer- are reserved"
	case len(alias) > maxFileName:
		return "the name of a file is no longer than 255 bytes"
	}
	return ""
}
