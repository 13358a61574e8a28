package cluster

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostNamed is how many names a message has, and how many Secrets are told of
// one hold.
const mostNamed = 20

// TestMessagesNameTwenty of many data keys.
func TestMessagesNameTwenty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const keys = mostNamed + 5
	conjurMap := map[string]string{}
	var ids []string
	for i := range keys {
		id := fmt.Sprintf("app/v%02d", i)
		ids, conjurMap[fmt.Sprintf("key%02d", i)] = append(ids, id), id
	}
	w.Variables(ids...)
	w.secret("db", conjurMap)
	w.secret("few", map[string]string{"key": ids[0]})
	p := w.start()
	eventually(t, "an Event about many keys", func() bool {
		told := strings.Join(w.events("db", "Synced"), "\n")
		return strings.Contains(told, "key00, key01, ") && strings.Contains(told, "key19 and 5 more") && !strings.Contains(told, "key20")
	})
	eventually(t, "an Event about one", func() bool {
		told := w.events("few", "Synced")
		return len(told) == 1 && told[0] == "Wrote key"
	})
	p.Stop()
}

// TestHoldIsToldToTwenty of many Secrets.
func TestHoldIsToldToTwenty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const secrets = mostNamed + 5
	ids, conjurMap := []string{"a", "b", "c", "d", "kept"}, map[string]string{}
	w.Variables(ids...)
	for _, id := range ids {
		conjurMap[id] = id
	}
	for i := range secrets {
		w.secret(fmt.Sprintf("s%02d", i), conjurMap)
	}
	p := w.start()
	for i := range secrets {
		w.awaitData(fmt.Sprintf("s%02d", i), map[string]string{"a": w.Value["a"]})
	}
	for _, id := range ids[:4] {
		w.Deny(id)
	}
	told := func() (n int) {
		list, err := plane.Core.Events(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Reason == "RemovalHeld" {
				n++
			}
		}
		return n
	}
	eventually(t, "Events about removals that are held back", func() bool { return told() >= mostNamed })
	w.secret("later", map[string]string{"kept": "kept"})
	eventually(t, "an Event after those", func() bool { return len(w.events("later", "Synced")) > 0 })
	if n := told(); n != mostNamed {
		t.Errorf("%d Secrets were told of the hold, want %d", n, mostNamed)
	}
	for _, id := range ids[:4] {
		w.awaitData("s00", map[string]string{id: w.Value[id]})
		w.Permit(id)
	}
	w.awaitData("s00", map[string]string{"a": w.Renew("a")})
	if n := told(); n != mostNamed {
		t.Errorf("%d Secrets were told after the return, want %d as before", n, mostNamed)
	}
	p.Stop()
}
