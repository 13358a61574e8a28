package cluster

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Another client that writes the same data key again and again is named, by Events and by the
// status. Syncer corrects the key each time, at most once a second. A new value is still
// delivered at once.
func TestAFight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings[1] = fmt.Sprintf("server: {address: %q, status: true}", w.address)
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	overwrite := func(round int) {
		t.Helper()
		patch := fmt.Sprintf(`{"data":{"a":%q}}`, base64.StdEncoding.EncodeToString(fmt.Append(nil, "theirs-", round)))
		if _, err := plane.Core.Secrets(w.namespace).Patch(t.Context(), "db", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival"}); err != nil {
			t.Fatal(err)
		}
	}
	contested := func(text string) func() bool {
		return func() bool {
			return slices.ContainsFunc(w.events("db", "Contested"), func(event string) bool { return strings.Contains(event, text) })
		}
	}
	overwrite(0)
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	eventually(t, "an Event about the first time", contested("the field manager rival changed a, and Syncer corrected it"))
	for round := range 4 {
		overwrite(round + 1)
		w.awaitData("db", map[string]string{"a": w.Value["a"]})
	}
	eventually(t, "an Event that says that it recurs", contested("the field manager rival changes a again and again"))
	if _, metrics := w.get("/metrics"); !strings.Contains(metrics, "syncer_contested_secrets 1") {
		t.Error("no metric says so")
	}
	if _, status := w.get("/status.json"); !strings.Contains(status, `"limits": "contested: the field manager rival changes a again`) {
		t.Errorf("the status does not say so: %s", status)
	}
	overwrite(5)
	w.Renew("a")
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	p.Stop()
}

// A client that removes a data key again and again is named too, if it owns anything of the
// Secret. So is the key.
func TestAFightOverARemovedKeyNamesKeyAndManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a", "b")
	w.secret("db", map[string]string{"a": "a", "b": "b"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"], "b": w.Value["b"]})
	for round := range 4 {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"rival/round":"%d"}},"data":{"a":null}}`, round)
		if _, err := plane.Core.Secrets(w.namespace).Patch(t.Context(), "db", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival"}); err != nil {
			t.Fatal(err)
		}
		w.awaitData("db", map[string]string{"a": w.Value["a"], "b": w.Value["b"]})
	}
	eventually(t, "an Event that names the rival and the key", func() bool {
		return slices.ContainsFunc(w.events("db", "Contested"), func(text string) bool {
			return strings.Contains(text, "field manager rival changes a again")
		})
	})
	p.Stop()
	t.Log(w.events("db", "Contested"))
}
