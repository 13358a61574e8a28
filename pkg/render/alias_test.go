package render

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// aliases are those that the formats differ about, by the formats that take
// them.
func TestAliases(t *testing.T) {
	const (
		y = 1 << iota // yaml
		j             // json
		v             // dotenv, bash
		p             // properties
		n             // java-properties
		e             // env-file, kubernetes-env
		d             // directory
	)
	bits := map[targets.Format]int{
		targets.FormatYAML: y, targets.FormatJSON: j, targets.FormatDotenv: v, targets.FormatBash: v,
		targets.FormatProperties: p, targets.FormatJavaProperties: n, targets.FormatEnvFile: e, targets.FormatKubernetesEnv: e, targets.FormatDirectory: d,
	}
	const any = y | j | v | p | n | e | d
	for _, c := range []struct {
		alias string
		by    int
	}{
		{"foobar", any}, {"FOOBAR", any}, {"_Foo_Bar_", any}, {"_12345", any}, {"a", any}, {"_", any},
		{"", 0},
		{".x", any &^ (v | p)}, {"foo.bar", any &^ v}, {"foo.", any &^ v}, {"FOO-BAR", any &^ (v | p)},
		{"7th_Heaven", y | j | n | d}, {"FOO BAR", y | j | n | d}, {"FOO_BAR ", y | j | n | d}, {"FOO_'BAR'", y | j | n | d},
		{"FOO\n", y | n | d}, {"a\nb", y | n | d}, {"a\rb", y | n | d}, {"a\tb", y | n | d},
		{"a\"b", y | n | d}, {"a\\b", y | n | d}, {"a/b", y | j | n}, {"*", y | j | n | d},
		{"a\x00b", n}, {"a\bb", n | d}, {"a\vb", n | d}, {"a\x1fb", n | d}, {"a\x7fb", n | d},
		{"a\u0085b", y | j | n | d}, {"a\u0086b", j | n | d}, {"a\u009fb", j | n | d}, {"a\u00a0b", y | j | n | d},
		{"ä", y | j | n | d}, {"🐶", y | j | n | d}, {"\ufeffa", y | j | n | d},
		{"a\ud7ffb", y | j | n | d}, {"a\ue000b", y | j | n | d}, {"a\ufffdb", y | j | n | d}, {"a\ufffeb", j | n | d},
		{"a\U00010000b", y | j | n | d}, {"a\U0010ffffb", y | j | n | d},
		{"a\xffb", j | d},
		{".", y | j | n | e}, {"..", y | j | n | e}, {"..data", y | j | n | e}, {".syncer-x", y | j | n | e},
		{strings.Repeat("a", 255), any}, {strings.Repeat("a", 256), any &^ d},
		{strings.Repeat("a", 1024), any &^ d}, {strings.Repeat("a", 1025), any &^ (d | y)},
		{strings.Repeat("a", 2097152), any &^ (d | y)}, {strings.Repeat("a", 2097153), any &^ (d | y | j)},
	} {
		for format, bit := range bits {
			target, _ := target(format, c.alias, "")
			if err := Check(target, ""); (err == nil) != (c.by&bit != 0) {
				t.Errorf("alias %.20q, format %s: error %.200v", c.alias, format, err)
			}
		}
		plain, _ := target(targets.FormatTemplate, c.alias, "")
		if err := Check(plain, ""); err != nil {
			t.Errorf("alias %.20q, format template: %v", c.alias, err)
		}
	}
}
