package load

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// each writes the format once for each number below n.
func each(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// growing has a case for every kind of list in a text. "*" at the start of a line
// repeats the line with the numbers below n. before is loaded first.
var growing = []struct {
	name, before, text string
	mode               Mode
}{
	{name: "annotations", text: "- !variable\n  id: v\n  annotations:\n*    a%d: x\n"},
	{name: "changed annotations", before: "- !variable\n  id: v\n  annotations:\n*    a%d: x\n", text: "- !variable\n  id: v\n  annotations:\n*    a%d: y\n"},
	{name: "layers", before: "*- !layer l%d\n", text: "- !host-factory\n  id: f\n  layers:\n*  - !layer l%d\n"},
	{name: "members", before: "- !group g\n*- !group m%d\n", text: "- !grant\n  role: !group g\n  members:\n*  - !group m%d\n"},
	{name: "granted roles", before: "- !group g\n*- !group m%d\n", text: "- !grant\n  member: !group g\n  roles:\n*  - !group m%d\n"},
	{name: "members of a long group", before: "*- !group m%d\n", text: "- !group\n  id: g\n  annotations:\n*    a%d: x\n- !grant\n  role: !group g\n  members:\n*  - !group m%d\n"},
	{name: "permitted roles", before: "- !variable v\n*- !group m%d\n", text: "- !permit\n  resource: !variable v\n  privilege: read\n  roles:\n*  - !group m%d\n"},
	{name: "roles permitted on a long variable", before: "*- !group m%d\n", text: "- !variable\n  id: v\n  annotations:\n*    a%d: x\n- !permit\n  resource: !variable v\n  privilege: read\n  roles:\n*  - !group m%d\n"},
	{name: "privileges", before: "- !variable v\n- !group g\n", text: "- !permit\n  resource: !variable v\n  role: !group g\n  privileges:\n*  - p%d\n"},
	{name: "resources", before: "- !group g\n*- !variable v%d\n", text: "- !permit\n  role: !group g\n  privilege: read\n  resources:\n*  - !variable v%d\n"},
	{name: "variables", text: "*- !variable v%d\n"},
	{name: "hosts", text: "*- !host h%d\n"},
	{name: "the same hosts", before: "*- !host h%d\n", text: "*- !host h%d\n", mode: Replace},
	{name: "bodies", text: "*- !policy { id: p%d, body: [ !variable v ] }\n"},
	{name: "networks", text: "- !host\n  id: h\n  restricted_to:\n*  - 2001:db8::%x/128\n"},
	{name: "public keys", text: "- !user\n  id: u\n  public_keys:\n*  - ssh-rsa AAAA%d me\n"},
	{name: "owned groups", text: "- !group o\n*- !group { id: g%d, owner: !group o }\n"},
	{name: "a chain of owners", text: "- !group gx\n*- !group { id: g%[1]dx, owner: !group g%[1]d }\n*- !group g%d\n"},
	{name: "grants", before: "*- !group g%d\n", text: "*- !grant { role: !group g%[1]d, member: !group g0 }\n"},
	{name: "permits", before: "- !group g\n*- !variable v%d\n", text: "*- !permit { role: !group g, privilege: read, resource: !variable v%d }\n"},
	{name: "deletions", before: "*- !host v%d\n", text: "*- !delete { record: !host v%d }\n"},
	{name: "deletions of new", text: "*- !host v%d\n*- !delete { record: !host v%d }\n"},
	{name: "deletions of factories", text: "- !layer l\n*- !host-factory { id: f%d, layers: [ !layer l ] }\n*- !delete { record: !host-factory f%d }\n"},
	{name: "a deletion of a policy", before: "- !policy\n  id: p\n  body:\n*  - !variable v%d\n", text: "- !delete { record: !policy p }\n"},
	{name: "denials", before: "- !group g\n*- !variable v%d\n*- !permit { role: !group g, privilege: read, resource: !variable v%d }\n", text: "- !deny\n  role: !group g\n  privilege: read\n  resources:\n*  - !variable v%d\n"},
	{name: "denials of new", text: "- !group g\n*- !variable v%d\n*- !permit { role: !group g, privilege: read, resource: !variable v%d }\n*- !deny { role: !group g, privilege: read, resource: !variable v%d }\n"},
	{name: "revocations", before: "- !group g\n*- !group m%d\n*- !grant { role: !group g, member: !group m%d }\n", text: "- !revoke\n  role: !group g\n  members:\n*  - !group m%d\n"},
	{name: "revocations of new", text: "- !group g\n*- !group m%d\n*- !grant { role: !group g, member: !group m%d }\n*- !revoke { role: !group g, member: !group m%d }\n"},
	{name: "a replacement by nothing", before: "*- !host h%d\n", text: "[]", mode: Replace},
}

// repeated writes out a text of growing. A repeated line contributes n lines.
func repeated(text string, n int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if one, ok := strings.CutPrefix(line, "*"); ok {
			line = each(n, one)
		}
		out.WriteString(line)
	}
	return out.String()
}

// loadGrowing loads the case into a new world, and runs measured around its load.
func loadGrowing(t testing.TB, before, text string, mode Mode, n int, measured func(load func())) {
	w := newWorld(t)
	if before != "" {
		w.load(Update, "root", repeated(before, n))
	}
	text = repeated(text, n)
	if mode == Add {
		mode = Update
	}
	measured(func() { w.load(mode, "root", text) })
}

// The memory that a load allocates, in all its loops together, grows as its text
// does. A loop that copies or decodes a list once for each item would show.
// BenchmarkLoad measures the time.
func TestLoadsGrowWithTheirText(t *testing.T) {
	const small, factor = 300, 8
	allocated := func(before, text string, mode Mode, n int) (bytes uint64) {
		loadGrowing(t, before, text, mode, n, func(load func()) {
			var from, to runtime.MemStats
			runtime.ReadMemStats(&from)
			load()
			runtime.ReadMemStats(&to)
			bytes = to.TotalAlloc - from.TotalAlloc
		})
		return bytes
	}
	for _, g := range growing {
		few, many := allocated(g.before, g.text, g.mode, small), allocated(g.before, g.text, g.mode, small*factor)
		if many > few*factor*3/2 {
			t.Errorf("%s: %d bytes for %d items, but %d for %d", g.name, few, small, many, small*factor)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, g := range growing {
		for _, n := range []int{10_000, 40_000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(g.name, " ", "-"), n), func(b *testing.B) {
				for range b.N {
					loadGrowing(b, g.before, g.text, g.mode, n, func(load func()) {
						b.ResetTimer()
						load()
						b.StopTimer()
					})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
			})
		}
	}
}
