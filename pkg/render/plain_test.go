package render

import (
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// For plain values the bytes are the Secrets Provider's, which puts every
// value through strconv.Quote. The letters tell which formats depart from that
// because the value would be damaged: y(aml), j(son), d(otenv), b(ash),
// p(roperties).
func TestPlainValues(t *testing.T) {
	for _, c := range []struct{ value, departs string }{
		{"", ""},
		{"plain", ""},
		{"  pad  ", ""},
		{"say \"hi\"", "d"},
		{"say \"hi\" now", "d"},
		{"it's", ""},
		{`C:\temp\n`, "d"},
		{`C:\temp\`, "d"},
		{"pa$HOME-word", "bd"},
		{"pa$home-word", "bd"},
		{"a$(echo INJECTED)b", "bd"},
		{"a`echo INJECTED`b", "bd"},
		{"5$", "bd"},
		{"wow!x", ""},
		{"line1\nline2", "bd"},
		{"value\n", "bd"},
		{"a\r\nb", "b"},
		{"a\tb", "bd"},
		{"-----BEGIN KEY-----\nMIIB+/=\n-----END KEY-----\n", "bd"},
		{"ÄäÖöÜü", ""},
		{"k🔑y", ""},
		{"a\u00a0b", "bd"},
		{"a\u2028b", "bd"},
		{"\ufeffx", "bd"},
		{"a\x00b", "bdjp"},
		{"a\ab", "bdjp"},
		{"a\bb", "bdp"},
		{"a\vb", "bdjp"},
		{"a\fb", "bd"},
		{"a\x1bb", "bdjp"},
		{"a\x7fb", "bdjp"},
		{"a\u0085b", "bd"},
		{"\xf0\xffJ\xc3", "ybdjp"},
		{"a\U000e0001b", "bdjp"},
		{"a\U0010ffffb", "bdjp"},
		{"<a href=\"x\">&amp;</a>", "d"},
		{"a #b", ""},
		{"a: b", ""},
		{"a=b=c", ""},
		{"100%s %d", ""},
		{"{{ secret \"x\" }}", "d"},
		{"{\"k\":[\"v\",1]}", "d"},
		{"true", ""}, {"null", ""}, {"0123", ""},
	} {
		quoted := strconv.Quote(c.value)
		for format, want := range map[targets.Format]string{
			targets.FormatYAML:       `"k1": ` + quoted + "\n" + `"k2": "z"`,
			targets.FormatJSON:       `{"k1":` + quoted + `,"k2":"z"}`,
			targets.FormatDotenv:     "k1=" + quoted + "\n" + `k2="z"`,
			targets.FormatBash:       "export k1=" + quoted + "\n" + `export k2="z"`,
			targets.FormatProperties: "k1=" + quoted + "\n" + `k2="z"`,
		} {
			target, items := target(format, "k1", c.value, "k2", "z")
			result, err := Render(target, "", items)
			same := err == nil && string(result.Parts[""].Bytes()) == want
			if departs := strings.Contains(c.departs, string(format[:1])); same == departs {
				t.Errorf("%s of %q: got %s, %v; the Secrets Provider gives %s, departs = %t", format, c.value, result.Parts[""].Bytes(), err, want, departs)
			}
		}
	}
}

// The other form that a format uses for a value which needs one.
func TestOtherForms(t *testing.T) {
	for _, c := range []struct {
		format      targets.Format
		value, want string
	}{
		{targets.FormatBash, "a$(b)'c'\n", `export k='a$(b)'\''c'\''` + "\n'"},
		{targets.FormatBash, "'$", `export k=''\''$'`},
		{targets.FormatDotenv, `say "hi"`, `k='say "hi"'`},
		{targets.FormatDotenv, "a$(b)`c`\n\t\\d", "k='a$(b)`c`\n\t\\d'"},
		{targets.FormatDotenv, "-----BEGIN KEY-----\nMIIB+/=\n", "k=\"-----BEGIN KEY-----\nMIIB+/=\n\""},
		{targets.FormatDotenv, "a #\t\u00a0\xff\n=!", "k=\"a #\t\u00a0\xff\n=!\""},
		{targets.FormatDotenv, "a\n\"b\"", "k='a\n\"b\"'"},
		{targets.FormatDotenv, "a\tb", "k='a\tb'"},
		{targets.FormatDotenv, "it's 5$, isn't\nit", "k=\"it's 5$, isn't\nit\""},
		{targets.FormatDotenv, "it's $(b)`c`\\$", "k=\"it's \\$(b)\\`c\\`\\\\\\$\""},
		{targets.FormatDotenv, "$HOME's\r\n", `k="\$HOME's\r\n"`},
		{targets.FormatDotenv, `C:\x\`, `k=C:\x\` + "\n"},
		{targets.FormatJSON, "\x00\v\U000e0001", `{"k":"\u0000\u000b\udb40\udc01"}`},
		{targets.FormatProperties, "\x00\b\U000e0001", `k="\u0000\u0008` + "\U000e0001\""},
		{targets.FormatJavaProperties, "  a=b:c#!\\\tä🔑", `k=\  a=b:c#!\\\t\u00e4\ud83d\udd11`},
		{targets.FormatEnvFile, `  $x "y" \n`, `k=  $x "y" \n`},
		{targets.FormatKubernetesEnv, " $x#\\\"\n\n\r", "k=' $x#\\\"\n\n\r'"},
	} {
		if got := file(t, c.format, "", "k", c.value); got != c.want {
			t.Errorf("%s of %q = %s, want %s", c.format, c.value, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		format      targets.Format
		alias, want string
	}{
		{targets.FormatYAML, "a\n\"b", `"a\n\"b": "v"`},
		{targets.FormatJSON, "a\U000e0001", `{"a\udb40\udc01":"v"}`},
		{targets.FormatJSON, "a\xff", `{"a\ufffd":"v"}`},
		{targets.FormatJavaProperties, " a=b:c#!\\ä\n", `\ a\=b\:c\#\!\\\u00e4\n=v`},
		{targets.FormatYAML, strings.Repeat("k", 1022), `"` + strings.Repeat("k", 1022) + `": "v"`},
		{targets.FormatYAML, strings.Repeat("k", 1023), `? "` + strings.Repeat("k", 1023) + "\"\n: \"v\""},
	} {
		if got := file(t, c.format, "", c.alias, "v"); got != c.want {
			t.Errorf("%s of alias %.30q = %.80s, want %.80s", c.format, c.alias, got, c.want)
		}
	}
}

// What dotenv, env-file and kubernetes-env cannot hold, up to the edge.
// test/clients/kubelet reads kubernetes-env.
func TestRefusedValues(t *testing.T) {
	readers := map[targets.Format]reader{targets.FormatDotenv: readDotenv, targets.FormatEnvFile: readEnvFile}
	for _, c := range []struct {
		format  targets.Format
		value   string
		refused bool
	}{
		{targets.FormatDotenv, `a\`, false},
		{targets.FormatDotenv, `"a\`, true},
		{targets.FormatDotenv, `'a\`, true},
		{targets.FormatDotenv, ` a\`, true},
		{targets.FormatDotenv, `$a\`, true},
		{targets.FormatDotenv, "it's\"", true},
		{targets.FormatDotenv, `a;b\`, true},
		{targets.FormatDotenv, "\u00a0a\\", true},
		{targets.FormatDotenv, `a #b\`, true},
		{targets.FormatDotenv, `a#b\`, false},
		{targets.FormatDotenv, "a\nb\\", true},
		{targets.FormatDotenv, "\xffa\\", true},
		{targets.FormatDotenv, "a\x00", true},
		{targets.FormatEnvFile, `"`, false},
		{targets.FormatEnvFile, `""`, true},
		{targets.FormatEnvFile, `'a'`, true},
		{targets.FormatEnvFile, `'a"`, false},
		{targets.FormatEnvFile, "a\rb", false},
		{targets.FormatEnvFile, "a\r", true},
		{targets.FormatEnvFile, strings.Repeat("x", 65535-len("k=")), false},
		{targets.FormatEnvFile, strings.Repeat("x", 65536-len("k=")), true},
		{targets.FormatKubernetesEnv, "", true},
		{targets.FormatKubernetesEnv, "a'", true},
		{targets.FormatKubernetesEnv, "a\r\nb", true},
		{targets.FormatKubernetesEnv, "a\n\rb\r", false},
		{targets.FormatKubernetesEnv, "a\x00", true},
		{targets.FormatKubernetesEnv, "\xff", true},
		{targets.FormatKubernetesEnv, "\ufffd", false},
		{targets.FormatKubernetesEnv, strings.Repeat("x", 65535-len("k=''")), false},
		{targets.FormatKubernetesEnv, strings.Repeat("x", 65536-len("k=''")), true},
		{targets.FormatKubernetesEnv, "\n" + strings.Repeat("x", 65535-len("'")), false},
		{targets.FormatKubernetesEnv, "\n" + strings.Repeat("x", 65536-len("'")), true},
	} {
		target, items := target(c.format, "k", c.value)
		result, err := Render(target, "", items)
		if (err != nil) != c.refused {
			t.Errorf("%s of %.20q: error %v, refused should be %t", c.format, c.value, err, c.refused)
		}
		if read := readers[c.format]; err == nil && read != nil {
			if got := read(t, result.Parts[""].Bytes())["k"]; got != c.value {
				t.Errorf("%s reads %.20q as %.20q", c.format, c.value, got)
			}
		}
	}
}
