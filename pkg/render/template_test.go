package render

import (
	"bytes"
	"strings"
	"testing"
	"text/template"

	"github.com/secretsync/syncer/pkg/targets"
)

// sample is the group that the templates below run on.
func sample() []string {
	return []string{"user", "admin", "pass", `p"a$s<&>`, "b64", "c2VjcmV0IHZhbHVl", "list", "a,b,c", "json", `{"host":"h","port":5432}`}
}

func TestTemplate(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{"", ""},
		{"static\n", "static\n"},
		{`{{ secret "user" }}`, "admin"},
		{`{{ secret "b64" | b64dec }}`, "secret value"},
		{`{{ secret "user" | b64enc }}`, "YWRtaW4="},
		{`{{ secret "pass" | js }}`, `p\"a$s\u003C\u0026\u003E`},
		{`{{ secret "pass" | html }}`, `p&#34;a$s&lt;&amp;&gt;`},
		{`{{ printf "%q" (secret "pass") }}`, `"p\"a$s<&>"`},
		{`{{ if eq (secret "user") "admin" }}yes{{ else }}no{{ end }}`, "yes"},
		{`{{ range $i, $s := .SecretsArray }}{{ if $i }},{{ end }}{{ $s.Alias }}{{ end }}`, "user,pass,b64,list,json"},
		{`{{ range $k, $v := .SecretsMap }}{{ $k }}={{ len $v.Value }};{{ end }}`, "b64=16;json=24;list=5;pass=8;user=5;"},
		{`{{ .SecretsMap.user.Value }}/{{ (index .SecretsMap "user").Alias }}`, "admin/user"},
		{`{{ with .SecretsMap.user }}{{ .Value }}{{ end }}`, "admin"},
		{`{{ define "d" }}<{{ . }}>{{ end }}{{ template "d" secret "user" }}{{ block "e" 1 }}{{ . }}{{ end }}`, "<admin>1"},
		{`{{ range 5 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ if eq . 3 }}{{ break }}{{ end }}{{ . }}{{ end }}`, "02"},
		{`{{- /* a comment */ -}} x {{- $a := 1 }}{{ $a = 2 }}{{ $a }}`, "x2"},
		{`{{ secret "user" | upper | quote }}`, `"ADMIN"`},
		{`{{ range splitList "," (secret "list") }}[{{ . }}]{{ end }}`, "[a][b][c]"},
		{`{{ (secret "json" | fromJson).host }}:{{ get (fromJson (secret "json")) "port" }}`, "h:5432"},
		{`{{ keys .SecretsMap | join " " }}`, "b64 json list pass user"},
		{`{{ range values (dict "b" 2 "a" 1) }}{{ . }}{{ end }}`, "12"},
		{`{{ $d := dict "a" 1 }}{{ $_ := set $d "b" (list 1 2) }}{{ toJson $d }}`, `{"a":1,"b":[1,2]}`},
		{`{{ "x" | repeat 3 }}{{ indent 2 "a\nb" }}{{ nindent 1 "c" }}{{ replace "a" "b" "aa" }}`, "xxx  a\n  b\n cbb"},
		{`{{ (split "," "a,b")._1 }}{{ (splitn "," 2 "a,b,c")._1 }}`, "bb,c"},
		{`{{ regexReplaceAll "d(.)" "admin" "<$1>" }}{{ regexMatch "^a" "ab" }}{{ regexFind "b+" "abbc" }}{{ regexFindAll "b" "abbc" -1 | join "," }}{{ regexSplit "b" "abc" -1 | join "," }}{{ regexReplaceAllLiteral "b" "abc" "$1" }}`, "a<m>intruebbb,ba,ca$1c"},
		{`{{ uniq (list 1 1 2) | join "," }}{{ without (list 1 2) 1 | join "," }}{{ has 1 (list 1) }}`, "1,22true"},
		{`{{ default "x" "" }}{{ coalesce "" "y" }}{{ ternary "a" "b" true }}{{ sha256sum "" | trunc 6 }}`, "xyae3b0c4"},
		{`{{ b32dec (b32enc "x") }}{{ printf "%5.1f|%-3s|%03d|%%" 1.25 "a" 7 }}`, "x  1.2|a  |007|%"},
	} {
		if got := file(t, targets.FormatTemplate, c.template, sample()...); got != c.want {
			t.Errorf("%s = %q, want %q", c.template, got, c.want)
		}
		target, _ := target(targets.FormatTemplate, sample()...)
		if err := Check(target, c.template); err != nil {
			t.Errorf("Check(%s): %v", c.template, err)
		}
	}
}

func TestTemplateBinary(t *testing.T) {
	value := "\x00\xff\n"
	if got := file(t, targets.FormatTemplate, `{{ secret "a" }}{{ secret "a" | b64enc }}`, "a", value); got != value+"AP8K" {
		t.Errorf("got %q", got)
	}
}

// Where a function of text/template is replaced, the result is the same, or an error.
// Only numbers are comparable that text/template does not compare.
func TestBuiltins(t *testing.T) {
	args := []string{`1`, `-1`, `0`, `1.5`, `"a"`, `"b"`, `""`, `true`, `false`, `'x'`, `nil`, `.List`, `.Map`, `.Nil`, `.Uint`, `(index .List 0)`, `(len .List)`}
	var texts []string
	for _, a := range args {
		for _, b := range args {
			for _, function := range []string{"eq", "ne", "lt", "le", "gt", "ge", "index", "print", "println", "html", "js", "urlquery", `printf "%v %5d"`, `printf "%s %q"`, `printf "%x %t"`, "eq 1", "slice", "len", "not"} {
				texts = append(texts, "{{ "+function+" "+a+" "+b+" }}")
			}
		}
		texts = append(texts, "{{ len "+a+" }}", "{{ not "+a+" }}", "{{ slice \"abc\" "+a+" }}")
	}
	texts = append(texts, `{{ eq 1 }}`, `{{ index .Map "a" }}`, `{{ index .List 1 }}`, `{{ index .List 2 }}`, `{{ index .List -1 }}`, `{{ index .List }}`)
	data := map[string]any{"List": []int{1, 2}, "Map": map[string]any{"a": 1}, "Nil": nil, "Uint": uint(1)}
	used := map[string]bool{}
	for _, f := range builtins() {
		used[f.name] = true
	}
	same := 0
	for _, text := range texts {
		want, wantErr := execute(template.New("t").Option("missingkey=error"), text, data)
		r := &run{work: work{left: maxWork}}
		got, err := execute(template.New("t").Option("missingkey=error").Funcs(r.functions(used)), text, data)
		doubtful := wantErr == nil && (strings.Contains(want, "<") || strings.Contains(want, "%!") || strings.Contains(want, "["))
		switch {
		case err != nil && (wantErr != nil || doubtful || !strings.HasPrefix(text, "{{ e") && !strings.HasPrefix(text, "{{ len")):
		case err != nil:
			t.Errorf("%s: %v; text/template gives %q", text, err, want)
		case wantErr != nil && strings.Contains(wantErr.Error(), "incompatible types"), strings.Contains(text, ".Uint") && strings.Contains(text, "slice"):
		case got != want || wantErr != nil:
			t.Errorf("%s = %q; text/template gives %q, %v", text, got, want, wantErr)
		default:
			same++
		}
	}
	if same < 300 {
		t.Errorf("only %d results are the same", same)
	}
}

func execute(t *template.Template, text string, data any) (string, error) {
	t, err := t.Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return "", err
	}
	return out.String(), nil
}

// Each run gives the same bytes.
func TestTemplateIsDeterministic(t *testing.T) {
	text := `{{ keys .SecretsMap | join "," }}{{ range values .SecretsMap }}{{ .Value }}{{ end }}{{ toJson .SecretsMap }}{{ range .SecretsMap }}{{ .Alias }}{{ end }}{{ omit .SecretsMap "user" | toJson }}`
	first := file(t, targets.FormatTemplate, text, sample()...)
	for range 50 {
		if again := file(t, targets.FormatTemplate, text, sample()...); again != first {
			t.Fatalf("%q and then %q", first, again)
		}
	}
}
