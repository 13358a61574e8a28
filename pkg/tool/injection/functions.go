package injection

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	sigsyaml "sigs.k8s.io/yaml"
)

// chartFunctions are Helm's functions, as far as the chart's templates of the sidecar use
// them, and with the chart's types only.
func chartFunctions() template.FuncMap {
	return template.FuncMap{
		"contains": func(part, s string) bool { return strings.Contains(s, part) },
		"deepCopy": deepCopy,
		"default":  func(standard, v any) any { return either(v, standard) },
		"dict":     dict,
		"dig":      dig,
		"div":      func(a, b int64) int64 { return a / b },
		"fail":     func(message string) (string, error) { return "", failure(message) },
		"fromYaml": func(text string) (content map[string]any, err error) {
			return content, sigsyaml.Unmarshal([]byte(text), &content)
		},
		"int":   toInt,
		"merge": mergeMissing,
		"mul":   mul,
		"nindent": func(n int, s string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", pad)
		},
		"quote":      quote,
		"regexMatch": regexp.MatchString,
		"replace":    func(old, fresh, s string) string { return strings.ReplaceAll(s, old, fresh) },
		"ternary": func(yes, no any, choice bool) any {
			if choice {
				return yes
			}
			return no
		},
		"toString": func(v any) string { return fmt.Sprint(v) },
		"toYaml": func(v any) (string, error) {
			text, err := sigsyaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"trim":       strings.TrimSpace,
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
	}
}

// quote writes nothing for a value that is not there, as Helm does.
func quote(v any) string {
	if v == nil {
		return ""
	}
	return strconv.Quote(fmt.Sprint(v))
}

// either returns v, or standard if v counts as false.
func either(v, standard any) any {
	if truth, _ := template.IsTrue(v); truth {
		return v
	}
	return standard
}

// dict takes keys and values in turn.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// dig takes the keys of a path, a default, and a map.
func dig(args ...any) (any, error) {
	v := args[len(args)-1]
	for _, key := range args[:len(args)-2] {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, failure(fmt.Sprintf("%v is not in a map", key))
		}
		if v, ok = m[fmt.Sprint(key)]; !ok {
			return args[len(args)-2], nil
		}
	}
	return v, nil
}

// toInt converts a number of YAML or its text.
func toInt(v any) (int64, error) {
	if f, ok := v.(float64); ok {
		return int64(f), nil
	}
	n, err := strconv.ParseInt(fmt.Sprint(cmp.Or(v, any(0))), 10, 64)
	if err != nil {
		return 0, failure(fmt.Sprintf("%v is not a whole number", v))
	}
	return n, nil
}

func mul(factors ...any) (product int64, err error) {
	product = 1
	for _, factor := range factors {
		n, err := toInt(factor)
		if err != nil {
			return 0, err
		}
		product *= n
	}
	return product, nil
}

// mergeMissing adds what the first map lacks.
func mergeMissing(into map[string]any, others ...map[string]any) map[string]any {
	for _, from := range others {
		for key, v := range from {
			old, taken := into[key].(map[string]any)
			fresh, also := v.(map[string]any)
			switch _, there := into[key]; {
			case taken && also:
				mergeMissing(old, fresh)
			case !there:
				into[key] = v
			}
		}
	}
	return into
}

// deepCopy copies maps with all that they contain.
func deepCopy(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	copied := make(map[string]any, len(m))
	for key, value := range m {
		copied[key] = deepCopy(value)
	}
	return copied
}
