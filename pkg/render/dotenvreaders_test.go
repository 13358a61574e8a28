package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// renderFor renders one value for readers of dotenv.
func renderFor(readers []string, alias, value string) (string, error) {
	target, items := target(targets.FormatDotenv, alias, value)
	target.DotenvReaders = readers
	result, err := Render(target, "", items)
	if err != nil {
		return "", err
	}
	return string(result.Parts[""].Bytes()), nil
}

// The readers for which a value is refused are those that read no form of it. The
// expectations are from the readers themselves; systemd's are from its table.
func TestDotenvReaders(t *testing.T) {
	for _, c := range []struct{ value, unable string }{
		{"", ""},
		{"plain #x", ""},
		{"pa$word", ""},
		{"$2b$12$abc.d", ""},
		{"a: $$", ""},
		{"a${NAME}b", "python-dotenv"},
		{"a$(id)b", "dotenv-expand"},
		{`{"a":"b"}`, ""},
		{"it's", ""},
		{"it's $5", "npm-dotenv python-dotenv node"},
		{`it's a\n`, "npm-dotenv node symfony bun dotenvx dotenv-expand"},
		{"it's `x`", "npm-dotenv python-dotenv node compose phpdotenv symfony bun dotenvx dotenv-expand"},
		{`a\\b`, ""},
		{`a\$b`, "bun dotenv-expand"},
		{"PEM\nx=\n", ""},
		{"PEM\nx=", "phpdotenv"},
		{"\"a\"\n\"b\"", "phpdotenv"},
		{"{\n\"a\": 1}", ""},
		{"a\r\nb", "shell systemd node"},
		{`C:\x\`, "shell systemd"},
		{`a#b\`, "npm-dotenv shell systemd node phpdotenv bun dotenvx dotenv-expand"},
		{"x\u00a0y", ""},
		{"\U0010ffff", "systemd"},
		{"\xff", "npm-dotenv python-dotenv systemd node compose phpdotenv symfony bun dotenvx dotenv-expand"},
	} {
		var unable []string
		for _, reader := range targets.DotenvReaders() {
			_, err := renderFor([]string{reader}, "k", c.value)
			if err == nil {
				continue
			}
			unable = append(unable, reader)
			if want := fmt.Sprintf("cannot hold the value of alias %q: no form of it is read correctly by %s; use format ", "k", reader); !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", c.value, err)
			}
		}
		if got := strings.Join(unable, " "); got != c.unable {
			t.Errorf("%q is refused for %q, want %q", c.value, got, c.unable)
		}
	}
}

// A value gets the first form that all readers read. Without one, the error names the
// readers that read none, or else all of them.
func TestDotenvReadersTogether(t *testing.T) {
	for _, c := range []struct{ readers, value, want string }{
		{"python-dotenv godotenv", `a\\b$`, `k="a\\\\b$"`},
		{"phpdotenv", "{\n\"a\": 1}", "k=\"{\n\\\"a\\\": 1}\""},
		{"bun shell", "a$b", `k="a\$b"`},
		{"npm-dotenv", "a$b", `k='a$b'`},
		{"bun python-dotenv node", "a$b", "by bun and python-dotenv and node; "},
		{"node shell godotenv", "it's $5\r", "by node and shell; "},
		{"node", "it's\"", "its quotes, backslashes and line breaks fit none"},
	} {
		got, err := renderFor(strings.Fields(c.readers), "k", c.value)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q for %s = %s, want %s", c.value, c.readers, got, c.want)
		}
	}
}

// TestDotenvReadersAgainstModels compares the rules with models of the most frequent
// readers, made after their sources, and with godotenv and a shell.
func TestDotenvReadersAgainstModels(t *testing.T) {
	for name, read := range map[string]reader{
		"godotenv": readDotenv, "shell": readShell("sh", "C"),
		"npm-dotenv": modelOf(readNPM), "python-dotenv": modelOf(readPython), "node": modelOf(readNode),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			want := map[string]string{}
			for _, value := range hostileValues() {
				if len(value) > 1<<12 {
					continue
				}
				alias := fmt.Sprintf("k%d", len(want))
				line, err := renderFor([]string{name}, alias, value)
				if err != nil {
					if strings.Contains(err.Error(), "correctly by "+name) {
						checkNoForm(t, name, read, value)
					}
					continue
				}
				lines, want[alias] = append(lines, line), value
				if len(lines) == 500 {
					checkRead(t, name, read(t, []byte(strings.Join(lines, "\n"))), want)
					lines, want = nil, map[string]string{}
				}
			}
			checkRead(t, name, read(t, []byte(strings.Join(lines, "\n"))), want)
		})
	}
}

func checkRead(t *testing.T, name string, got, want map[string]string) {
	t.Helper()
	for alias, value := range want {
		if got[alias] != value {
			t.Errorf("%s reads %q as %q", name, value, got[alias])
		}
	}
}

// checkNoForm checks that a model reads a refused value in neither quotes. It does not ask
// the real readers, which are slow, or of which no value but such as these is known.
func checkNoForm(t *testing.T, name string, read reader, value string) {
	t.Helper()
	if name == "godotenv" || name == "shell" || strings.Contains(value, "\ufffd") || notUTF8(value) {
		return
	}
	if !strings.ContainsAny(value, "'\r") && !strings.HasSuffix(value, `\`) && read(t, []byte("k='"+value+"'\nz='1'"))["k"] == value {
		t.Errorf("%s reads %q in single quotes, and it is refused", name, value)
	}
}

// modelOf makes a reader of a function that reads the first assignment of a text.
func modelOf(first func(text string) (name, value, rest string)) reader {
	return func(_ *testing.T, content []byte) map[string]string {
		got := map[string]string{}
		for text := string(content); text != ""; {
			var name, value string
			if name, value, text = first(text); name != "" {
				got[name] = value
			}
		}
		return got
	}
}

var npmLine = regexp.MustCompile(`(?m)^\s*([\w.-]+)\s*=(\s*'(?:\\'|[^'])*'|\s*"(?:\\"|[^"])*"|[^#\r\n]+)?\s*(?:#.*)?$`)

func readNPM(text string) (name, value, rest string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	m := npmLine.FindStringSubmatchIndex(text)
	if m == nil {
		return "", "", ""
	}
	name, rest = text[m[2]:m[3]], text[m[1]:]
	if m[4] >= 0 {
		value = strings.TrimSpace(text[m[4]:m[5]])
	}
	if value != "" && strings.Contains(`"'`, value[:1]) {
		quote := value[0]
		value = value[1 : len(value)-1]
		if quote == '"' {
			value = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(value)
		}
	}
	return name, value, rest
}

var (
	pythonLine   = regexp.MustCompile(`^\s*([^=#\s]+)=(?:'((?:\\'|[^'])*)'|"((?:\\"|[^"])*)"|([^\r\n]*))[^\r\n]*(?:\r\n|\n|\r|$)`)
	pythonSingle = regexp.MustCompile(`\\[\\']`)
	pythonDouble = regexp.MustCompile(`\\[\\'"abfnrtv]`)
	pythonName   = regexp.MustCompile(`\$\{[^}]*\}`)
)

func readPython(text string) (name, value, rest string) {
	m := pythonLine.FindStringSubmatch(text)
	if m == nil {
		return "", "", ""
	}
	unescape := func(e string) string {
		if i := strings.IndexByte("abfnrtv", e[1]); i >= 0 {
			return "\a\b\f\n\r\t\v"[i : i+1]
		}
		return e[1:]
	}
	value = pythonSingle.ReplaceAllStringFunc(m[2], unescape) + pythonDouble.ReplaceAllStringFunc(m[3], unescape) + strings.TrimRight(m[4], " \t")
	return m[1], pythonName.ReplaceAllString(value, ""), text[len(m[0]):]
}

func readNode(text string) (name, value, rest string) {
	name, text, _ = strings.Cut(strings.TrimLeft(text, "\n"), "=")
	line, rest, _ := strings.Cut(text, "\n")
	if text == "" || !strings.Contains(`"'`, text[:1]) {
		value, _, _ = strings.Cut(line, "#")
		return name, strings.TrimSpace(value), rest
	}
	end := strings.Index(text[1:], text[:1])
	if end < 0 {
		return name, line, rest
	}
	value = text[1 : 1+end]
	if text[0] == '"' {
		value = strings.ReplaceAll(value, `\n`, "\n")
	}
	_, rest, _ = strings.Cut(text[2+end:], "\n")
	return name, value, rest
}

// Every reader has a rule, and none is listed twice.
func TestDotenvReadersAreKnown(t *testing.T) {
	names := targets.DotenvReaders()
	target := &targets.Target{Format: targets.FormatDotenv, DotenvReaders: names}
	if err := target.CheckDotenvReaders(); err != nil || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("%q: %v", names, err)
	}
	target.DotenvReaders = []string{"node", "nods"}
	if err := target.CheckDotenvReaders(); err == nil || !strings.HasPrefix(err.Error(), `"nods" is not a reader`) {
		t.Errorf("an unknown reader: %v", err)
	}
}
