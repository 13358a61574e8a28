package conjurd

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// crowded opens a server with so many variables in policies of a hundred, each
// with a value, that one host may read all of, through a group.
func crowded(b *testing.B, variables int) *Server {
	b.Helper()
	s := open(b, Options{Data: filepath.Join(b.TempDir(), "data"), DataKey: make([]byte, 32), Create: true})
	loadRoot(b, s, "- !host reader\n- !group readers\n- !grant { role: !group readers, member: !host reader }\n")
	values := map[string][]byte{}
	var text strings.Builder
	for i := range variables {
		if i%100 == 0 {
			fmt.Fprintf(&text, "- !policy\n  id: p%04d\n  body:\n", i/100)
		}
		fmt.Fprintf(&text, "  - !variable v%02d\n  - !permit { role: !group /readers, privileges: [read, execute], resource: !variable v%02d }\n", i%100, i%100)
		values[bigID(i)] = fmt.Appendf(nil, "the value of number %d, which is neither long nor short", i)
		if i%100 == 99 {
			fmt.Fprintf(&text, "  - !host app\n")
		}
		if i%10_000 == 9_999 || i == variables-1 {
			loadRoot(b, s, text.String())
			text.Reset()
			if err := s.SetMany(b.Context(), values); err != nil {
				b.Fatal(err)
			}
			clear(values)
		}
	}
	return s
}

func bigID(i int) string { return fmt.Sprintf("p%04d/v%02d", i/100, i%100) }

func BenchmarkServer(b *testing.B) {
	const variables = 100_000
	s := crowded(b, variables)
	var ids []string
	for i := range 250 {
		ids = append(ids, "dev:variable:"+bigID(i*(variables/250)))
	}
	key := apiKey(b, s, "host/reader")
	for _, c := range []struct {
		name string
		as   string
		q    request
	}{
		{"single", "host/reader", request{method: "GET", path: "/secrets/dev/variable/" + bigID(777)}},
		{"batch250", "host/reader", request{method: "GET", path: "/secrets?variable_ids=" + strings.Join(ids, ",")}},
		{"batch250admin", "admin", request{method: "GET", path: "/secrets?variable_ids=" + strings.Join(ids, ",")}},
		{"whoami", "host/reader", request{method: "GET", path: "/whoami"}},
		{"authenticate", "", request{method: "POST", path: "/authn/dev/host%2Freader/authenticate", body: key}},
		{"set", "admin", request{method: "POST", path: "/secrets/dev/variable/" + bigID(778), body: "x"}},
	} {
		if c.as != "" {
			c.q.header = map[string]string{"Authorization": tokenFor(b, s, c.as)}
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				q := c.q
				if c.name == "set" {
					q.body = fmt.Sprint(n)
					n++
				}
				if w := send(b, s, q); w.Code >= http.StatusBadRequest {
					b.Fatalf("status %d", w.Code)
				}
			}
		})
	}
}

func apiKey(b testing.TB, s *Server, login string) string {
	b.Helper()
	key, err := s.APIKey(b.Context(), login)
	if err != nil {
		b.Fatal(err)
	}
	return key
}

// BenchmarkPolicy loads variables into a new policy, with ids in no order.
func BenchmarkPolicy(b *testing.B) {
	for _, variables := range []int{100_000, 200_000} {
		var text strings.Builder
		text.WriteString("- !policy\n  id: big\n  body:\n")
		for i := range variables {
			fmt.Fprintf(&text, "  - !variable v%d\n", i*7919%variables)
		}
		b.Run(fmt.Sprint(variables), func(b *testing.B) {
			for b.Loop() {
				s := open(b, Options{Data: filepath.Join(b.TempDir(), "data"), DataKey: make([]byte, 32), Create: true})
				loadRoot(b, s, text.String())
			}
		})
	}
}
