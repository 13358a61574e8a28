package render

import (
	"runtime"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

const (
	endless = "it does not end within the work that a template may do"
	large   = "it makes a value of more than 4194304 bytes"
	deep    = "it nests more than 32 lists or maps"
	costly  = "it takes more work than a single call may"
	many    = "it makes a list of more than 100000 elements"
)

// runaways are templates that would take hours, or all memory, or the stack.
var runaways = []struct{ template, want string }{
	{`{{ range 3000000000 }}{{ end }}`, endless},
	{`{{ range 3000000000 }}{{ else }}x{{ end }}`, endless},
	{`{{ range 3000000000 }}{{ range 3000000000 }}{{ continue }}{{ end }}{{ end }}`, endless},
	{`{{ range 3000000000 }}{{ if eq . -1 }}{{ break }}{{ end }}{{ end }}`, endless},
	{`{{ define "x" }}{{ end }}{{ range 3000000000 }}{{ template "x" }}{{ end }}`, endless},
	{`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "more than 100 templates call each other"},
	{`{{ define "a" }}{{ template "b" }}{{ end }}{{ define "b" }}{{ if true }}{{ template "a" }}{{ end }}{{ end }}{{ template "a" }}`, "more than 100 templates call each other"},
	{`{{ define "a" }}{{ if lt (len .) 90 }}{{ template "a" (append . 1) }}{{ template "a" (append . 2) }}{{ end }}{{ end }}{{ template "a" list }}`, endless},
	{strings.Repeat("{{ if true }}", 200) + strings.Repeat("{{ end }}", 200), "more than 100 blocks or parentheses within each other"},
	{`{{ print ` + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + ` }}`, "more than 100 blocks or parentheses within each other"},
	{strings.Repeat("{{ 1 }}", 10_001), "its text has more than 10000 actions"},
	{strings.Repeat("x", 1<<20+1), "its text has more than 1048576 bytes"},
	{`{{ $s := repeat 1000000 "x" }}{{ range 10 }}{{ $s }}{{ end }}`, "it writes more than 4194304 bytes"},
	{`{{ range 100000000 }}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ end }}`, "it writes more than 4194304 bytes"},
	{`{{ repeat 1000000000000 "x" }}`, large},
	{`{{ $s := "xx" }}{{ range 100 }}{{ $s = print $s $s }}{{ end }}`, "the arguments of print have more than 1048576 bytes"},
	{`{{ $s := repeat 1000000 "x" }}{{ range 1000 }}{{ $_ := upper $s }}{{ end }}`, endless},
	{`{{ $s := repeat 1000000 "x" }}{{ range 100000 }}{{ $_ := sha256sum $s }}{{ end }}`, endless},
	{`{{ $s := repeat 1000000 "x" }}{{ $t := upper $s }}{{ range 1000000 }}{{ $_ := eq $s $t }}{{ end }}`, endless},
	{`{{ range 1000 }}{{ $_ := repeat 1000000 "x" }}{{ end }}`, endless},
	{`{{ indent 1000000000 "x" }}`, large},
	{`{{ nindent 1000000 (repeat 1000000 "\n") }}`, large},
	{`{{ $s := repeat 40000 "x" }}{{ replace "x" $s $s }}`, large},
	{`{{ $s := repeat 40000 "x" }}{{ join $s (until 10000) }}`, large},
	{`{{ $s := repeat 40000 "x" }}{{ regexReplaceAll "" $s $s }}`, large},
	{`{{ $s := repeat 10000 "x" }}{{ regexReplaceAll ".*" $s (repeat 200000 "$0") }}`, large},
	{`{{ $s := repeat 40000 "x" }}{{ regexReplaceAllLiteral "" $s $s }}`, large},
	{`{{ regexFind (repeat 100 "(x{1000})") (repeat 1000000 "x") }}`, "regexFind: argument 1 is a pattern that repeats too much"},
	{`{{ regexFind (repeat 200 "(x{1000})") "x" }}`, "regexFind: argument 1 is a pattern of more than 1000 bytes"},
	{`{{ printf "%999999d%999999d%999999d%999999d%999999d" 1 1 1 1 1 }}`, large},
	{`{{ printf "%4000000.400000f" 1 }}`, large},
	{`{{ trimAll (repeat 100000 "é") (repeat 100000 "ü") }}`, costly},
	{`{{ regexFindAll "x*y|x" (repeat 90000 "x") -1 }}`, costly},
	{`{{ regexReplaceAll "\\s+$" (repeat 90000 " x") "" }}`, costly},
	{`{{ until 1000000000000 }}`, many},
	{`{{ until -1000000000000 }}`, many},
	{`{{ untilStep 0 9223372036854775807 1 }}`, many},
	{`{{ untilStep 0 9223372036854775807 9223372036854775806 }}`, many},
	{`{{ splitList "" (repeat 1000000 "x") }}`, many},
	{`{{ split "x" (repeat 1000000 "x") }}`, many},
	{`{{ regexSplit "" (repeat 1000000 "x") -1 }}`, costly},
	{`{{ regexFindAll "" (repeat 1000000 "x") -1 }}`, costly},
	{`{{ uniq (until 10000) }}`, costly},
	{`{{ $l := until 10000 }}{{ range 1000 }}{{ $_ := without $l 1 2 3 }}{{ end }}`, endless},
	{`{{ fromJson (repeat 1000000 "[") }}`, "the arguments of fromJson have more than 65536 bytes"},
	{`{{ $l := list 1 }}{{ range 1000 }}{{ $l = list $l }}{{ end }}{{ deepCopy $l }}`, deep},
	{`{{ $l := list 1 }}{{ range 1000 }}{{ $l = list $l }}{{ end }}{{ toJson $l }}`, deep},
	{`{{ $l := list 1 }}{{ range 1000 }}{{ $l = list $l }}{{ end }}{{ deepEqual $l $l }}`, deep},
	{`{{ $l := list "xxxxxxxxxxxxxxxx" }}{{ range 25 }}{{ $l = list $l $l }}{{ end }}{{ $l | deepCopy }}`, "the arguments of deepCopy have more than 262144 bytes"},
	{`{{ $l := list "xxxxxxxxxxxxxxxx" }}{{ range 25 }}{{ $l = list $l $l }}{{ end }}{{ toPrettyJson $l }}`, "the arguments of toPrettyJson have more than 262144 bytes"},
	{`{{ $d := dict }}{{ $_ := set $d "a" $d }}`, deep},
	{`{{ $d := dict }}{{ $l := list }}{{ range 40 }}{{ $l = list $l }}{{ end }}{{ $_ := merge $d (dict "a" $l) }}`, deep},
	{`{{ $d := dict }}{{ $_ := set $d "a" (dict "b" $d) }}{{ toJson $d }}`, deep},
}

func TestRunawayTemplates(t *testing.T) {
	for _, c := range runaways {
		target, items := target(targets.FormatTemplate, "k", "v")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Render(target, c.template, items)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100s: error %.300v, want %s", c.template, err, c.want)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 512 {
			t.Errorf("%.100s makes %d MiB", c.template, made)
		}
	}
}

// What is allowed fits.
func TestBoundsAreWide(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	if got := file(t, targets.FormatTemplate, `{{ secret "k" }}{{ secret "k" | b64enc | b64dec | upper | lower }}`, "k", long); got != long+long {
		t.Error("a long value changes")
	}
	var pairs []string
	for range 2000 {
		pairs = append(pairs, "k"+strings.Repeat("0", len(pairs)), "value")
	}
	text := `{{ $all := "" }}{{ range .SecretsArray }}{{ $all = print $all (.Value | b64enc | quote) }}{{ end }}{{ len $all }}`
	if got := file(t, targets.FormatTemplate, text, pairs[:400]...); got != "2000" {
		t.Errorf("got %s", got)
	}
	if got := file(t, targets.FormatTemplate, `{{ range 50000 }}{{ if eq . 7 }}x{{ end }}{{ end }}`); got != "x" {
		t.Errorf("got %s", got)
	}
	nested := strings.Repeat("{{ if true }}", 90) + "x" + strings.Repeat("{{ end }}", 90)
	if got := file(t, targets.FormatTemplate, nested); got != "x" {
		t.Errorf("got %s", got)
	}
}
