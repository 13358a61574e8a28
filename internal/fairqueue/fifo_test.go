package fairqueue_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/internal/fairqueue"
)

func TestFIFONamespacesTakeTurns(t *testing.T) {
	for name, test := range map[string]struct{ push, barred, want string }{
		"a burst goes behind what came later":   {"a1 a2 a3 b1 c1 b2", "", "a1 b1 c1 a2 b2 a3"},
		"without a barred namespace":            {"a1 a2 b1 c1 b2", "a", "b1 c1 b2"},
		"nothing, because all are barred":       {"a1 b1", "ab", ""},
		"of one namespace, in order of arrival": {"a1 a2 a3", "", "a1 a2 a3"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines fairqueue.FIFO[string]
			for key := range strings.FieldsSeq(test.push) {
				lines.Push(key[:1], key)
			}
			var got []string
			for {
				key, ok := lines.Pop(func(namespace string) bool { return !strings.Contains(test.barred, namespace) })
				if !ok {
					break
				}
				got = append(got, key)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
			if left := len(strings.Fields(test.push)) - len(got); lines.Len() != left {
				t.Errorf("%d are left, want %d", lines.Len(), left)
			}
		})
	}
}

// A namespace that was passed over keeps its turn.
func TestWhoIsPassedOverIsNext(t *testing.T) {
	var lines fairqueue.FIFO[string]
	for _, key := range []string{"a1", "b1", "c1", "b2"} {
		lines.Push(key[:1], key)
	}
	got, _ := lines.Pop(func(namespace string) bool { return namespace != "a" })
	all := func(string) bool { return true }
	for range 3 {
		key, _ := lines.Pop(all)
		got += " " + key
	}
	if got != "b1 a1 c1 b2" {
		t.Errorf("got %s", got)
	}
	lines.Push("b", "b3") // whose line was empty
	if key, ok := lines.Pop(all); !ok || key != "b3" {
		t.Errorf("got %q", key)
	}
}
