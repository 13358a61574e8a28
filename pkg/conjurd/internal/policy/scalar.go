package policy

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// value is the value of a scalar: its text as the genuine server shows it, and that
// server's name for the type.
type value struct{ text, class string }

const classString = "String"

// lazily returns a function that compiles the pattern when it is first called. A process
// that parses no policy then needs neither time nor memory for it.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// Number formats of the genuine server.
var (
	decimal  = lazily(`^[-+]?(0|[1-9][0-9_,]*)$`)
	radix    = lazily(`^0([0-7_,]+|[xX][0-9a-fA-F]+|b[01_]+)$`)
	float    = lazily(`^[-+]?[0-9_]*(\.[0-9]+)?([eE][-+][0-9]+)?$`)
	noDigits = strings.NewReplacer("_", "", ",", "")
)

// Words with a special meaning, in lower case. They also apply in upper case and
// capitalized.
var words = map[string]value{
	"": {"", "NilClass"}, "~": {"", "NilClass"}, "null": {"", "NilClass"},
	"yes": {"true", "TrueClass"}, "on": {"true", "TrueClass"}, "true": {"true", "TrueClass"},
	"no": {"false", "FalseClass"}, "off": {"false", "FalseClass"}, "false": {"false", "FalseClass"},
	".inf": {"Infinity", "Float"}, "-.inf": {"-Infinity", "Float"}, ".nan": {"NaN", "Float"},
}

// valueOf reads a scalar. Only a plain scalar can be anything other than a string.
func valueOf(n *yaml.Node) value {
	s := n.Value
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return value{s, classString}
	}
	lower := strings.ToLower(s)
	if v, ok := words[lower]; ok && slices.Contains([]string{lower, strings.ToUpper(s), capital(lower)}, s) {
		return v
	}
	if decimal().MatchString(s) || radix().MatchString(s) {
		if i, ok := new(big.Int).SetString(noDigits.Replace(s), 0); ok {
			return value{i.String(), "Integer"}
		}
	}
	if float().MatchString(s) && strings.ContainsAny(s, ".eE") {
		if f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil {
			return value{floatText(f), "Float"}
		}
	}
	if _, err := time.Parse(time.DateOnly, s); err == nil {
		return value{s, "Date"}
	}
	return value{s, classString}
}

// Plain reports whether an unquoted text is read as that same text, and not as a
// number, a date or another type.
func Plain(s string) bool { return valueOf(&yaml.Node{Value: s}) == value{s, classString} }

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// floatText formats a number, always with a fraction. Very large and very small
// numbers get an exponent.
func floatText(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa + "e" + exponent
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// annotation returns the text of an annotation's value. A list becomes a text in
// brackets.
func annotation(name string, n *yaml.Node) (string, error) {
	visits := 0
	return annotationText(name, n, 0, &visits)
}

func annotationText(name string, n *yaml.Node, depth int, visits *int) (string, error) {
	n = unalias(n)
	if *visits += 1 + len(n.Value)/itemSize; depth > maxDepth || *visits > maxItems {
		return "", placeOf(n).errorf("the annotation '%s' is too long or nested too deeply", name)
	}
	switch {
	case n.Kind == yaml.MappingNode || isTagged(n):
		return "", placeOf(n).errorf("Attribute '%s' can't be a mapping", name)
	case n.Kind == yaml.ScalarNode && depth == 0:
		return valueOf(n).text, nil
	case n.Kind == yaml.ScalarNode:
		v := valueOf(n)
		switch v.class {
		case classString:
			return strconv.Quote(v.text), nil
		case "NilClass":
			return "nil", nil
		}
		return v.text, nil
	}
	var items []string
	for _, item := range n.Content {
		text, err := annotationText(name, item, depth+1, visits)
		if err != nil {
			return "", err
		}
		items = append(items, text)
	}
	return "[" + strings.Join(items, ", ") + "]", nil
}

// stringAttribute reads an attribute that must be a string.
func stringAttribute(attribute string, n *yaml.Node) (string, error) {
	n = unalias(n)
	switch {
	case isTagged(n):
		return "", placeOf(n).expected("string", attribute, className(n.Tag))
	case n.Kind == yaml.MappingNode:
		return "", placeOf(n).errorf("Attribute '%s' can't be a mapping", attribute)
	case n.Kind != yaml.ScalarNode:
		return "", placeOf(n).errorf("expected a single value for field '%s'", attribute)
	}
	v := valueOf(n)
	if v.class == "NilClass" {
		return "", nil
	}
	if v.class != classString {
		return "", placeOf(n).expected("string", attribute, v.class)
	}
	return v.text, nil
}

// texts reads one string, or a list of strings.
func texts(attribute string, n *yaml.Node) ([]string, error) {
	return each(n, func(item *yaml.Node) (string, error) {
		s, err := stringAttribute(attribute, item)
		if err == nil && s == "" {
			err = placeOf(item).errorf("the field '%s' has an empty item", attribute)
		}
		return s, err
	})
}

// integer reads an attribute that must be a number.
func integer(attribute string, n *yaml.Node) (string, error) {
	n = unalias(n)
	if v := valueOf(n); n.Kind == yaml.ScalarNode && !isTagged(n) && (v.class == "Integer" || v.class == "NilClass") {
		return v.text, nil
	}
	return "", placeOf(n).expected("integer", attribute, valueOf(n).class)
}

// boolean reads an attribute that must be a boolean.
func boolean(attribute string, n *yaml.Node) (bool, error) {
	n = unalias(n)
	v := valueOf(n)
	if n.Kind != yaml.ScalarNode || v.text != "true" && v.text != "false" && v.class != "NilClass" {
		return false, placeOf(n).expected("boolean", attribute, v.class)
	}
	return v.text == "true", nil
}

// className returns the genuine server's type name for a tag: "HostFactory" for
// "!host-factory".
func className(tag string) string {
	var out strings.Builder
	for part := range strings.FieldsFuncSeq(strings.TrimPrefix(tag, "!"), func(r rune) bool { return r == '-' || r == '_' }) {
		out.WriteString(capital(part))
	}
	return out.String()
}
