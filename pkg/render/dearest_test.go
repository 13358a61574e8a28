//go:build !race

// The race detector has functions make more than they do.

package render

import (
	"errors"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A call makes arguments of about n bytes.
type call func(n int) []any

func fill(text string, n int) string { return strings.Repeat(text, max(n/len(text), 0)) }

// texts returns all of n bytes to an argument; numbers stand for themselves.
func texts(args ...any) call {
	return func(n int) []any {
		made := slices.Clone(args)
		long := 0
		for _, arg := range args {
			if text, ok := arg.(string); ok && len(text) > 0 {
				long++
			}
		}
		for i, arg := range args {
			if text, ok := arg.(string); ok && len(text) > 0 {
				made[i] = fill(text, n/long)
			}
		}
		return made
	}
}

// with puts short arguments before a long text, and after it.
func with(text string, before []any, after ...any) call {
	return func(n int) []any {
		for _, arg := range append(slices.Clone(before), after...) {
			n -= size(reflect.ValueOf(arg), true, maxResult)
		}
		return append(append(slices.Clone(before), fill(text, n)), after...)
	}
}

// listOf returns n bytes of small elements, each with 16 of its own.
func listOf(element any, before ...any) call {
	return func(n int) []any {
		n -= size(reflect.ValueOf(before), true, maxResult)
		list := make([]any, max(n/(elementWork+size(reflect.ValueOf(element), true, maxResult)), 0))
		for i := range list {
			list[i] = element
		}
		return append(slices.Clone(before), list)
	}
}

// different returns n bytes of integers that differ.
func different(n int) []any {
	list := make([]any, n/(elementWork+1))
	for i := range list {
		list[i] = i
	}
	return []any{list}
}

// fields returns n bytes of maps with small entries.
func fields(maps int, before ...any) call {
	return func(n int) []any {
		args := slices.Clone(before)
		n -= size(reflect.ValueOf(before), true, maxResult)
		for range maps {
			m := map[string]any{}
			for i := range max(n/maps/(entryWork+7), 0) {
				m[string([]byte{'k', 'a' + byte(i>>16&15), 'a' + byte(i>>12&15), 'a' + byte(i>>8&15), 'a' + byte(i>>4&15), 'a' + byte(i&15)})] = 1
			}
			args = append(args, m)
		}
		return args
	}
}

// spread calls with as many arguments as n bytes have room for.
func spread(element any, before ...any) call {
	return func(n int) []any {
		args := slices.Clone(before)
		n -= size(reflect.ValueOf(before), true, maxResult)
		for range max(n/(elementWork+size(reflect.ValueOf(element), true, maxResult)), 0) {
			args = append(args, element)
		}
		return args
	}
}

// nested returns lists within each other around n bytes of small elements.
func nested(n int) []any {
	v := listOf("")(n - 30*elementWork)[0]
	for range 30 {
		v = []any{v}
	}
	return []any{v}
}

// dearestCalls are, for each function, the calls that cost most for their
// size: found by trying thousands of all kinds.
func dearestCalls() map[string][]call {
	dearest := map[string][]call{}
	for _, row := range []struct {
		functions string
		calls     []call
	}{
		{"b64enc b64dec b32dec sha1sum sha256sum sha512sum adler32sum", []call{texts("A")}},
		{"secret versions fail base dir", []call{texts("x"), texts("/../")}},
		{"b32enc lower nospace trim upper regexQuoteMeta", []call{texts("\xff"), texts("a "), texts("b\u0301"), texts("1."), texts(" ")}},
		{"trunc", []call{with("x", []any{1 << 20})}},
		{"substr", []call{with("x", []any{0, 1 << 22})}},
		{"contains hasPrefix hasSuffix trimPrefix trimSuffix", []call{texts("x", "x"), with("xxxxxxxy", []any{"xxxxxxxz"})}},
		{"trimAll", []call{texts("aé", "é"), with("é", []any{"aé"})}},
		{"repeat", []call{func(n int) []any { return []any{1, fill("x", n)} }, func(n int) []any { return []any{n, "x"} }}},
		{"indent nindent", []call{func(n int) []any { return []any{3, fill("\n", n)} }, func(n int) []any { return []any{n, "x"} }}},
		{"replace", []call{func(n int) []any { return []any{"x", "yyyy", fill("x", n)} }, func(n int) []any { return []any{"", "yyy", fill("\xff", n)} }}},
		{"quote squote print println html js urlquery", []call{texts("\x00"), texts("<"), texts("'"), texts("\xff"), spread("<"), spread("\x00"), listOf("\x00"), fields(1), nested}},
		{"printf", []call{with("\x00", []any{"%q"}), with("\xff", []any{"%x"}), with("\x00", []any{"%[1]q%[1]q"}), func(n int) []any { return []any{fill("%9d", n)} }, func(int) []any { return []any{"%4000000d", 1} }, fields(1, "%#v")}},
		{"toString toJson toRawJson toPrettyJson", []call{texts("<"), texts("\x00"), texts("\xff"), listOf("<"), listOf(""), listOf(1.5e300), fields(1), nested}},
		{"fromJson", []call{func(n int) []any { return []any{"[" + fill("1,", n-4) + "1]"} }, func(n int) []any { return []any{"[" + fill("[],", n-4) + "1]"} }, func(n int) []any { return []any{"[" + fill("{},", n-4) + "1]"} }, func(n int) []any { return []any{"[" + fill(`{"":1},`, n-4) + "1]"} }, texts("[")}},
		{"add int max min mod mul sub atoi div",
			[]call{texts("9"), texts("\xff"), texts("0"), texts("1_"), spread(1.7976931348623157e308), spread("1e308"), spread("4.9e-324"), listOf(1), fields(1)}},
		{"div mod sub", []call{texts("9", "9"), texts("\xff", "\xff"), func(n int) []any { return append(fields(1)(n/2), fields(1)(n/2)...) }}},
		{"eq ne lt le gt ge", []call{texts("x", "x")}},
		{"len not", []call{texts("x"), listOf(1), fields(1)}},
		{"coalesce default empty kindIs list ternary", []call{texts("x", "x"), spread(1), spread("x"), fields(1), listOf(1)}},
		{"ternary", []call{func(n int) []any { return []any{fill("x", n/2), "", true} }}},
		{"dict", []call{func(n int) []any {
			var args []any
			for i := range n / 2 / (elementWork + 3) {
				args = append(args, string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}), i)
			}
			return args
		}}},
		{"append prepend", []call{func(n int) []any { return append(listOf(1)(n), 1) }}},
		{"first initial last rest reverse sortAlpha uniq", []call{listOf(1), different, listOf("x"), nested}},
		{"without", []call{func(n int) []any { return append(different(n), -1) }, func(n int) []any { return append(different(n/2), different(n / 2)[0].([]any)...) }}},
		{"concat", []call{func(n int) []any { return append(listOf(1)(n/2), listOf(1)(n/2)...) }}},
		{"has", []call{func(n int) []any { return append([]any{-1}, different(n)...) }, func(n int) []any { return append([]any{fill("x", n/2)}, listOf("x")(n/2)...) }}},
		{"slice", []call{listOf(1)}},
		{"join", []call{listOf(1, "xx"), listOf("x", ""), fields(1, "")}},
		{"split splitList", []call{texts("", "x"), with("x", []any{"x"}), func(n int) []any { return []any{"", fill("x", n)} }}},
		{"splitn", []call{func(n int) []any { return []any{"", n, fill("x", n)} }}},
		{"until", []call{func(n int) []any { return []any{n} }}},
		{"untilStep", []call{func(n int) []any { return []any{0, n, 1} }}},
		{"deepCopy", []call{fields(1), listOf(1), nested}},
		{"deepEqual", []call{fields(2), func(n int) []any { return append(listOf(1)(n/2), listOf(1)(n/2)...) }}},
		{"merge mergeOverwrite", []call{fields(2), fields(10)}},
		{"dig", []call{func(n int) []any { return []any{"x", 1, fields(1)(n - 64)[0]} }}},
		{"get hasKey", []call{func(n int) []any { return []any{fields(1)(n - 64)[0], "x"} }}},
		{"index", []call{func(n int) []any { return []any{fields(1)(n - 64)[0], "kaaaaa"} }}},
		{"set", []call{func(n int) []any { return []any{fields(1)(n - 64)[0], "x", 1} }}},
		{"unset", []call{func(n int) []any { return []any{fields(1)(n - 64)[0], "x"} }}},
		{"keys values", []call{fields(1), fields(2)}},
		{"omit pick", []call{func(n int) []any { return append(fields(1)(n/2), spread("kaaaaa")(n/2)...) }}},
		{"urlParse", []call{texts("x"), texts("%41"), texts("/"), texts("\x00"), func(n int) []any { return []any{"http://u:p@h/" + fill("%41", n-16)} }}},
		{"regexMatch regexFind", []call{with("x", []any{"(x+x+)+y"}), with("x", []any{"(x?){40}x{40}y"}), with("x", []any{".*a.*b.*c"}), with("é", []any{`\pL+\d`}), with("x", []any{"y"}), with("x", []any{strings.Repeat("(x{900})", 5) + "y"})}},
		{"regexFindAll regexSplit", []call{with("x", []any{"x*y|x"}, -1), with("x", []any{""}, -1), with("x", []any{"x"}, -1), with("x ", []any{`\s+$`}, -1), with("x", []any{"(x{20})+"}, -1)}},
		{"regexReplaceAll regexReplaceAllLiteral", []call{with("x", []any{"x*y|x"}, "y"), with("x", []any{""}, "yyyy"), with("x", []any{"x"}, "$0$0"), with("x", []any{"()()()()()()()()()()x"}, "$1"), with("x ", []any{`\s+$`}, "")}},
	} {
		for name := range strings.FieldsSeq(row.functions) {
			dearest[name] = append(dearest[name], row.calls...)
		}
	}
	return dearest
}

// cost is what a call took; refused: its arguments did not pass the bounds.
type cost struct {
	bytes   uint64
	took    time.Duration
	refused bool
}

// measured calls a function as a template does. ok is false for arguments that
// the function does not have.
func measured(name string, args []any) (c cost, ok bool) {
	r := &run{work: work{left: maxWork}, secrets: map[string]any{}}
	call := r.guard(loadLibrary().all[name])
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err := call(args...)
	c.took = time.Since(start)
	runtime.ReadMemStats(&after)
	c.bytes = after.TotalAlloc - before.TotalAlloc
	var limit *limitError
	var function *functionError
	c.refused = errors.As(err, &limit)
	return c, !errors.As(err, &function) || !function.always
}

// dearest finds about the largest arguments that pass the function's bounds,
// and returns what calls up to these cost.
func dearest(name string, args call) (most cost, ok bool) {
	step := loadLibrary().all[name].most
	for passes := 0; step > passes/8; step /= 2 {
		c, ok := measured(name, args(passes+step))
		if !ok {
			return most, false
		}
		most.bytes, most.took = max(most.bytes, c.bytes), max(most.took, c.took)
		if !c.refused {
			passes += step
		}
	}
	return most, true
}

// No call of any function makes more than 20 MiB, whatever passes its bounds,
// or takes more than the work of a call. How long that takes is for the
// benchmark to say.
func TestDearestCalls(t *testing.T) {
	const most = 20 << 20
	calls := dearestCalls()
	for _, name := range bounded() {
		tried := 0
		for i, args := range calls[name] {
			c, ok := dearest(name, args)
			if c.bytes > most {
				t.Errorf("call %d of %s makes %d KiB", i, name, c.bytes>>10)
			}
			if ok {
				tried++
			}
		}
		if tried == 0 {
			t.Errorf("no call of %s is tried", name)
		}
	}
}

// bounded lists the functions that guard wraps.
func bounded() []string { return slices.Sorted(maps.Keys(loadLibrary().all)) }

// BenchmarkDearestCalls measures the calls that TestDearestCalls bounds, each
// at the edge of what it may do.
func BenchmarkDearestCalls(b *testing.B) {
	calls := dearestCalls()
	for _, name := range bounded() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var most cost
				for _, args := range calls[name] {
					c, _ := dearest(name, args)
					most.took, most.bytes = max(most.took, c.took), max(most.bytes, c.bytes)
				}
				b.ReportMetric(float64(most.took.Microseconds())/1000, "dearest-ms")
				b.ReportMetric(float64(most.bytes)/(1<<20), "dearest-MiB")
			}
		})
	}
}
