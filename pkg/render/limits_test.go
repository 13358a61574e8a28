package render

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// limited reports whether f exceeds a limit. Any other panic is a fault of the test.
func limited(t *testing.T, f func()) (exceeded bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(*limitError); !ok {
				t.Errorf("panic %v", p)
			}
			exceeded = true
		}
	}()
	f()
	return false
}

// TestBoundsOfTemplates: a template that reaches a limit is rendered, and one beyond it is
// not.
func TestBoundsOfTemplates(t *testing.T) {
	for what, c := range map[string]struct {
		bound int
		of    func(n int) string
		want  string
	}{
		"the text": {1 << 20, func(n int) string { return strings.Repeat("x", n) }, "its text has more than 1048576 bytes"},
		"actions":  {10_000, func(n int) string { return strings.Repeat("{{1}}", n) }, "its text has more than 10000 actions"},
		"blocks": {100, func(n int) string { return strings.Repeat("{{if true}}", n) + "{{1}}" + strings.Repeat("{{end}}", n) },
			"more than 100 blocks or parentheses within each other"},
		"parentheses": {100, func(n int) string { return "{{ print " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}" },
			"more than 100 blocks or parentheses within each other"},
		"calls": {100, func(n int) string { // of which one is the template itself
			text := `{{ template "t1" }}{{ define "t` + fmt.Sprint(n-1) + `" }}{{ end }}`
			for i := 1; i < n-1; i++ {
				text += fmt.Sprintf(`{{ define "t%d" }}{{ template "t%d" }}{{ end }}`, i, i+1)
			}
			return text
		}, "more than 100 templates call each other"},
		"the output": {4 << 20, func(n int) string {
			return fmt.Sprintf(`{{ $s := repeat 1048576 "x" }}{{ $s }}{{ $s }}{{ $s }}{{ repeat %d "x" }}`, n-3<<20)
		}, "it writes more than 4194304 bytes"},
		"a value":    {4 << 20, func(n int) string { return fmt.Sprintf(`{{ $_ := repeat %d "x" }}`, n) }, large},
		"elements":   {100_000, func(n int) string { return fmt.Sprintf(`{{ $_ := until %d }}`, n) }, many},
		"text":       {1 << 20, func(n int) string { return fmt.Sprintf(`{{ $_ := upper (repeat %d "x") }}`, n) }, "arguments of upper have more than 1048576 bytes"},
		"two texts":  {4 << 20, func(n int) string { return fmt.Sprintf(`{{ $_ := eq (repeat %d "x") "x" }}`, n-1) }, "arguments of eq have more than 4194304 bytes"},
		"escaped":    {512 << 10, func(n int) string { return fmt.Sprintf(`{{ $_ := html (repeat %d "x") }}`, n) }, "arguments of html have more than 524288 bytes"},
		"quoted":     {256 << 10, func(n int) string { return fmt.Sprintf(`{{ $_ := quote (repeat %d "x") }}`, n) }, "arguments of quote have more than 262144 bytes"},
		"JSON":       {64 << 10, func(n int) string { return fmt.Sprintf(`{{ $_ := fromJson (print "1" (repeat %d " ")) }}`, n-1) }, "arguments of fromJson have more than 65536 bytes"},
		"numbers":    {4 << 10, func(n int) string { return fmt.Sprintf(`{{ $_ := atoi (print (repeat %d "0") 1) }}`, n-1) }, "arguments of atoi have more than 4096 bytes"},
		"a pattern":  {1000, func(n int) string { return fmt.Sprintf(`{{ regexMatch (repeat %d "x") "y" }}`, n) }, "is a pattern of more than 1000 bytes"},
		"exponents":  {999_999_999, func(n int) string { return fmt.Sprintf(`{{ lt 1 (fromJson "1e%d") }}`, n) }, "cannot be compared"},
		"exponents ": {999_999_999, func(n int) string { return fmt.Sprintf(`{{ gt 1 (fromJson "1e-%d") }}`, n) }, "cannot be compared"},
		"JSON depth": {maxDepth, func(n int) string {
			return fmt.Sprintf(`{{ $_ := fromJson (print (repeat %d "[") (repeat %d "]")) }}`, n, n)
		}, deep},
		"JSON depth of values": {maxDepth, func(n int) string {
			return fmt.Sprintf(`{{ $_ := fromJson (print (repeat %d "[") "1" (repeat %d "]")) }}`, n, n)
		}, deep},
		"map depth": {maxDepth, func(n int) string {
			return fmt.Sprintf(`{{ $d := dict }}{{ range %d }}{{ $d = dict "a" $d }}{{ end }}{{ $_ := deepCopy $d }}`, n-1)
		}, deep},
		"list depth": {maxDepth, func(n int) string {
			return fmt.Sprintf(`{{ $l := list }}{{ range %d }}{{ $l = list $l }}{{ end }}{{ $_ := deepCopy $l }}`, n-1)
		}, deep},
	} {
		for less := -1; less <= 1; less++ {
			target, items := target(targets.FormatTemplate)
			_, err := Render(target, c.of(c.bound+less), items)
			if (err == nil) != (less <= 0) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, the bound%+d: %.300v", what, less, err)
			}
		}
	}
}

// TestBoundsOfWork: all units may be spent, and no more.
func TestBoundsOfWork(t *testing.T) {
	for _, c := range []struct {
		what  string
		do    func(n int)
		bound int
	}{
		{"work", func(n int) { (&work{left: 100}).spend(n) }, 100},
		{"a call", func(n int) { (&work{left: maxWork}).call(n) }, maxCall},
		{"a call without work left", func(n int) { (&work{left: 100}).call(n) }, 100},
		{"once", func(n int) { fits(1, n) }, maxResult},
		{"twice", func(n int) { fits(2, n) }, maxResult / 2},
		{"copies", func(n int) { fits(n, 4) }, maxResult / 4},
		{"elements", few, maxElements},
	} {
		for less := -1; less <= 1; less++ {
			if limited(t, func() { c.do(c.bound + less) }) != (less > 0) {
				t.Errorf("%s, the bound%+d", c.what, less)
			}
		}
	}
	for _, units := range []int{-1, 0} { // a sum that is too large for its type
		if limited(t, func() { (&work{left: 100}).spend(units) }) != (units < 0) || limited(t, func() { (&work{left: 100}).call(units) }) != (units < 0) {
			t.Errorf("%d units", units)
		}
	}
	w := work{left: 100}
	if !limited(t, func() { w.spend(101) }) || !limited(t, func() { w.spend(1) }) || limited(t, func() { fits(0, maxResult+1) }) {
		t.Error("work that exceeds the budget leaves some of it, or no copies need room")
	}
}

// TestBoundsOfPatterns: the program of a pattern may have 5000 instructions.
func TestBoundsOfPatterns(t *testing.T) {
	for less := -1; less <= 1; less++ {
		pattern := ""
		for n := 0; ; n++ { // two repetitions of 2400 instructions or so, and letters
			pattern = strings.Repeat("(?:yx){470}", 2) + strings.Repeat("z", n)
			parsed, err := syntax.Parse(pattern, syntax.Perl)
			if err != nil || instructions(parsed) > maxInstructions+less {
				t.Fatalf("no pattern has %d instructions; %v", maxInstructions+less, err)
			}
			if instructions(parsed) == maxInstructions+less {
				break
			}
		}
		r := &run{work: work{left: maxWork}}
		var refused any
		func() {
			defer func() { refused = recover() }()
			r.compile(pattern)
		}()
		if (refused == nil) != (less <= 0) {
			t.Errorf("the bound%+d: %v", less, refused)
		}
	}
}

// TestBoundsOfSizes: what a limit counts of a value.
func TestBoundsOfSizes(t *testing.T) {
	for what, c := range map[string]struct {
		value         any
		deep, shallow int
	}{
		"text":            {"xxx", 3, 3},
		"a number":        {7, 1, 1},
		"an empty list":   {[]any{}, 0, 0},
		"a list":          {[]any{"xxx", 7}, 2*elementWork + 4, 2 * elementWork},
		"a map":           {map[string]any{"kk": "xxx"}, entryWork + 5, entryWork},
		"a structure":     {templateSecret{"kk", "xxx"}, 5, 0},
		"lists in a list": {[]any{[]any{"x"}}, 2*elementWork + 1, elementWork},
	} {
		v := reflect.ValueOf(c.value)
		if deep, shallow := size(v, true, maxResult), size(v, false, maxResult); deep != c.deep || shallow != c.shallow {
			t.Errorf("%s: %d and %d, want %d and %d", what, deep, shallow, c.deep, c.shallow)
		}
	}
	// What exceeds the limit is not walked to its end, and what reaches it is.
	for less := -1; less <= 1; less++ {
		list := []any{"12345678", "1234", "1"}
		m := measure{deep: true, most: 3*elementWork + 12 + less}
		m.add(reflect.ValueOf(list), 0)
		if want := m.most + min(1-less, 1); less >= 0 && m.bytes != 3*elementWork+13 || less < 0 && m.bytes != 3*elementWork+12 {
			t.Errorf("the bound%+d: %d are counted, want %d", less, m.bytes, want)
		}
	}
	m := measure{deep: true, most: elementWork}
	m.arguments([]any{"x", strings.Repeat("x", elementWork), "12"}, 2)
	if want := elementWork + 1; m.bytes != want {
		t.Errorf("%d bytes of arguments, want %d: the other ones are more than the limit already", m.bytes, want)
	}
}

// TestBoundsOfSecrets: the data of a Secret may have 1 MiB.
func TestBoundsOfSecrets(t *testing.T) {
	for less := -1; less <= 1; less++ {
		values := map[string]string{"k": strings.Repeat("x", MaxSecret/2), "l": strings.Repeat("x", MaxSecret/2+less)}
		value := func(id string) secret.Value { return secret.New([]byte(values[id])) }
		entries := []targets.Entry{{Alias: "k", Variable: "k"}, {Alias: "l", Variable: "l"}}
		whole := Secret(&targets.Target{Entries: entries, Secret: &targets.Secret{}}, value, nil)
		group := &targets.Target{Group: "g", Format: targets.FormatTemplate, Entries: entries[1:]}
		grouped := Secret(&targets.Target{Entries: entries[:1], Secret: &targets.Secret{Groups: []*targets.Target{group}}}, value,
			func(*targets.Target) (string, error) { return `{{ secret "l" }}`, nil })
		if (len(whole.Errs) == 0) != (less <= 0) || (len(grouped.Errs) == 0) != (less <= 0) {
			t.Errorf("the bound%+d: %v; with a group: %v", less, whole.Errs, grouped.Errs)
		}
	}
}

// TestBoundsOfBudgets: a template that follows others has what they left, if they left any.
func TestBoundsOfBudgets(t *testing.T) {
	group, items := target(targets.FormatTemplate)
	for left, want := range map[int]string{-1: "used up the limit", 0: "used up the limit", 1: "does not end", 1000: ""} {
		r := dataRun{data: &Data{Parts: map[string]secret.Value{}}, budget: &work{left: left}, template: func(*targets.Target) (string, error) { return "x", nil }}
		if err := r.group(group, items); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d left: %v", left, err)
		}
	}
}

// TestBoundsOfKeys: a key of YAML with more than 1024 characters, with its quotes, is marked.
func TestBoundsOfKeys(t *testing.T) {
	for less := -1; less <= 1; less++ {
		alias := strings.Repeat("k", longestSimpleKey-len(`""`)+less)
		if text := file(t, targets.FormatYAML, "", alias, "v"); strings.HasPrefix(text, "? ") != (less > 0) || !strings.Contains(text, alias) {
			t.Errorf("the bound%+d: %.30s", less, text)
		}
	}
}

// TestBoundsOfTypes: numbers of a template have 64 bits with their sign.
func TestBoundsOfTypes(t *testing.T) {
	for _, c := range []struct {
		value any
		ok    bool
	}{{uint64(1<<63 - 2), true}, {uint64(1<<63 - 1), true}, {uint64(1 << 63), false}} {
		if n, ok := integer(c.value); ok != c.ok || ok && uint64(n) != c.value {
			t.Errorf("%v: %d, %t", c.value, n, ok)
		}
	}
	target, items := target(targets.FormatTemplate)
	for text, want := range map[string]string{
		`{{ add 9223372036854775806 1 }}`: "9223372036854775807", `{{ add 9223372036854775807 0 }}`: "9223372036854775807",
		`{{ add -9223372036854775807 -1 }}`: "-9223372036854775808", `{{ add -9223372036854775808 -1 }}`: "",
		`{{ sub -9223372036854775807 1 }}`: "-9223372036854775808", `{{ sub 9223372036854775807 0 }}`: "9223372036854775807",
		`{{ sub 0 -9223372036854775807 }}`: "9223372036854775807", `{{ sub 0 -9223372036854775808 }}`: "",
	} {
		result, err := Render(target, text, items)
		if got := string(result.Parts[""].Bytes()); got != want || (err == nil) != (want != "") {
			t.Errorf("%s = %q, %v", text, got, err)
		}
	}
}
