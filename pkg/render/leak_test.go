package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// hostileTemplates do their best to get the value of alias c, or the number
// that alias n holds, into an error.
var hostileTemplates = []string{
	`{{ fail (secret "c") }}`,
	`{{ secret "c" | fail }}`,
	`{{ fail (printf "%s" .SecretsMap.c.Value) }}`,
	`{{ secret (secret "c") }}`,
	`{{ secret "c" | secret }}`,
	`{{ template (secret "c") }}`,
	`{{ index .SecretsMap (secret "c") }}`,
	`{{ index (dict "a" 1) (secret "c") }}`,
	`{{ index .SecretsArray (secret "c") }}`,
	`{{ index .SecretsArray (atoi (secret "n")) }}`,
	`{{ index (secret "c") 1000 }}`,
	`{{ slice (secret "c") 0 (atoi (secret "n")) }}`,
	`{{ slice .SecretsArray (atoi (secret "n")) }}`,
	`{{ secret "c" | b64dec }}`,
	`{{ secret "c" | b32dec }}`,
	`{{ b64dec (print (secret "c") "!") }}`,
	`{{ secret "c" | fromJson }}`,
	`{{ (fromJson (secret "c")).x }}`,
	`{{ (urlParse (print "http://" (secret "c") "%zz")).host }}`,
	`{{ urlParse (print ":" (secret "c")) }}`,
	`{{ get (dict "a" 1) (secret "c") }}`,
	`{{ range secret "c" }}{{ end }}`,
	`{{ range $a, $b := secret "c" }}{{ end }}`,
	`{{ range $a, $b := atoi (secret "n") }}{{ end }}`,
	`{{ (secret "c").Field }}`,
	`{{ $x := secret "c" }}{{ $x.Field }}`,
	`{{ .SecretsMap.c.Value.Field }}`,
	`{{ with secret "c" }}{{ .Field }}{{ end }}`,
	`{{ with secret "c" }}{{ secret "gone" }}{{ end }}`,
	`{{ lt (secret "c") 1 }}`,
	`{{ eq (list (secret "c")) (list 1) }}`,
	`{{ eq .SecretsArray .SecretsArray }}`,
	`{{ len (atoi (secret "n")) }}`,
	`{{ call (secret "c") }}`,
	`{{ call .SecretsMap.c.Value 1 }}`,
	`{{ add (secret "c") | fail }}`,
	`{{ upper .SecretsArray }}`,
	`{{ upper .SecretsMap.c }}`,
	`{{ repeat (atoi (secret "n")) (secret "c") }}`,
	`{{ repeat -1 (secret "c") }}`,
	`{{ until (atoi (secret "n")) }}`,
	`{{ div 1 (sub (len (secret "c")) (len (secret "c"))) }}`,
	`{{ join "" (list (dict "a" (secret "c"))) }}`,
	`{{ printf (secret "c") 1 }}`,
	`{{ regexMatch (print "(" (secret "c")) "x" }}`,
	`{{ regexReplaceAll "x" "x" (print "$" (secret "n") (secret "c")) }}`,
	`{{ dig (secret "c") "x" }}`,
	`{{ dig 1 2 .SecretsMap }}`,
	`{{ get .SecretsArray (secret "c") }}`,
	`{{ first (secret "c") }}`,
	`{{ regexFind (secret "n") (secret "c") }}`,
	`{{ append (secret "c") 1 }}`,
	`{{ concat (secret "c") }}`,
	`{{ dict (secret "c") 1 (secret "c") 2 }}`,
	`{{ substr 5 1 (secret "c") }}`,
	`{{ substr -1 1000000 (secret "c") }}`,
	`{{ trunc (secret "c") "x" }}`,
	`{{ merge (dict) (secret "c") }}`,
	`{{ merge (dict "c" 1) (dict "c" (secret "c")) | upper }}`,
	`{{ slice (list 1 2) (atoi (secret "n")) }}`,
	`{{ printf "%*d" (atoi (secret "n")) 1 }}`,
	`{{ printf (print (secret "c") "%p") 1 }}`,
	`{{ join "," (dict (secret "c") 1) | atoi | upper }}`,
	`{{ keys (secret "c") }}`,
	`{{ toJson (secret "c") | index }}{{ index (secret "c") "a" }}`,
	`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" secret "c" }}`,
	`{{ $l := list (secret "c") }}{{ range until 40 }}{{ $l = list $l }}{{ end }}{{ $l }}`,
	`{{ $l := list (secret "c") }}{{ range until 30 }}{{ $l = list $l $l }}{{ end }}{{ $l }}`,
	`{{ $s := secret "c" }}{{ range until 100 }}{{ $s = print $s $s }}{{ end }}`,
	`{{ range 1000000000 }}{{ secret "c" }}{{ end }}`,
	`{{ range until 100000 }}{{ repeat 100 (secret "c") }}{{ end }}`,
	`{{ secret "c" | nosuchfunction }}`,
	`{{ secret "c" `,
}

const (
	canary       = "CANARY-4711>: map has no entry for key \"hidden\""
	numberCanary = "918273645"
)

func TestErrorsShowNoValue(t *testing.T) {
	for _, text := range hostileTemplates {
		target, items := target(targets.FormatTemplate, "c", canary, "n", numberCanary)
		result, err := Render(target, text, items)
		if err == nil {
			t.Errorf("%s gives a result: %.200q", text, result.Parts[""].Bytes())
			continue
		}
		for ; err != nil; err = errors.Unwrap(err) {
			shown := strings.ToUpper(fmt.Sprintf("%s %v %+v %#v", err, err, err, err))
			for _, part := range []string{"CANARY", "4711", "HIDDEN", numberCanary[:6]} {
				if strings.Contains(shown, part) {
					t.Errorf("%s shows the value: %s", text, shown)
				}
			}
		}
	}
}

func TestErrorsOfTemplates(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{`{{ nosuch }}`, `template: g:1: function "nosuch" not defined`},
		{`{{ < }}`, `template: g:1: unexpected "<" in command`},
		{`{{ secret "zz" }}`, `template: g:1:3: the group has no alias "zz", in {{ secret "zz" }}`},
		{"a\n\n  {{ secret\n \"user\" | b64dec }}", `template: g:4:10: b64dec: argument 1 is not base64, in {{ secret "user" | b64dec }}`},
		{`{{ "zz" | secret }}`, `template: g:1:10: the group has no such alias, in {{ "zz" | secret }}`},
		{`{{ .SecretsMap.nope.Value }}`, `template: g:1:14: map has no entry for key "nope", in {{ .SecretsMap.nope.Value }}`},
		{`{{ index .SecretsMap "nope" }}`, `template: g:1:3: index: argument 2 is not a key of the map, in {{ index .SecretsMap "nope" }}`},
		{`{{ index .SecretsArray 5 }}`, `template: g:1:3: index: argument 2 is outside of the list, in {{ index .SecretsArray 5 }}`},
		{`{{ .Nope }}`, `template: g:1:3: there is no field or key "Nope" here, in {{ .Nope }}`},
		{`{{ template "nope" }}`, `template: g:1:12: template "nope" is not defined, in {{ template "nope" }}`},
		{`{{ secret }}`, `template: g:1:3: secret: wrong number of arguments: it takes 1, not 0, in {{ secret }}`},
		{`{{ upper 5 }}`, `template: g:1:3: upper: argument 1 must be text, not a whole number, in {{ upper 5 }}`},
		{`{{ fail "no port" }}`, `template: g:1:3: fail: no port, in {{ fail "no port" }}`},
		{`{{ first list }}`, `template: g:1:3: first: argument 1 is an empty list, in {{ first list }}`},
		{`{{ if false }}{{ else }}{{ first list }}{{ end }}`, `template: g:1:27: first: argument 1 is an empty list, in {{ first list }}`},
		{"{{ 1 }} long\n{{ 2 }} longer\n {{ secret `zz` }}", "template: g:3:4: the group has no alias \"zz\", in {{ secret `zz` }}"},
		{`{{ len 5 }}`, `template: g:1:3: len: argument 1 must be text, a list or a map, not a whole number, in {{ len 5 }}`},
		{`{{ range 1.5 }}{{ end }}`, `template: g:1:9: it uses a value that is not there, or has the wrong type, in {{ range 1.5 }}`},
		{`{{ define "x" }}` + "\n" + `{{ secret "zz" }}{{ end }}{{ template "x" }}`, `template: g:2:3: the group has no alias "zz", in {{ secret "zz" }}`},
		{`{{ secret "zz" }}` + strings.Repeat(" ", 100), `template: g:1:3: the group has no alias "zz", in {{ secret "zz" }}`},
	} {
		target, items := target(targets.FormatTemplate, sample()...)
		_, err := Render(target, c.template, items)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error\n %v, want\n %s", c.template, err, c.want)
		}
	}
}

// What Check reports, and what it leaves to Render since it may be due to the
// placeholders.
func TestCheckTemplate(t *testing.T) {
	for template, reported := range map[string]bool{
		`{{ secret "zz" }}`:                              true,
		`{{ secret "zz" | upper }}`:                      true,
		`{{ .SecretsMap.zz.Value | upper }}`:             true,
		`{{ index .SecretsMap "zz" }}`:                   true,
		`{{ index .SecretsArray 9 }}`:                    true,
		`{{ secret "user" | nosuch }}`:                   true,
		`{{ template "zz" }}{{ upper "a" }}`:             true,
		`{{ upper }}`:                                    true,
		`{{ upper 5 }}`:                                  true,
		`{{ range 3000000000 }}{{ upper "a" }}{{ end }}`: true,
		`{{ slice (secret "user") 0 100 }}`:              true,
		`{{ secret "user" | b64dec }}`:                   false,
		`{{ (secret "json" | fromJson).host }}`:          false,
		`{{ secret "json" | fromJson }}`:                 false,
		`{{ index (secret "list" | splitList ",") 2 }}`:  false,
		`{{ if ne (len (secret "user")) 5 }}{{ fail "the user must have 5 letters" }}{{ end }}`: false,
	} {
		target, _ := target(targets.FormatTemplate, sample()...)
		if err := Check(target, template); (err != nil) != reported {
			t.Errorf("Check(%s) = %v, want an error: %t", template, err, reported)
		}
	}
}
