package kubesecrets_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
)

// reported collects what a sink reports of its rights.
type reported map[string]error

func (r reported) Remark(subject string, err error) { r[subject] = err }

func (k *kube) reports() reported {
	r := reported{}
	k.sink.Sink.(*kubesecrets.Sink).Remarker = r
	return r
}

// With get and update, as the Secrets Provider's Role grants them, all is as
// with patch, but for a report.
func TestUpdateSuffices(t *testing.T) {
	k := newKube(t)
	k.makeForeign(t, "1", "2", "other", nil)
	k.as(t, "get", "update")
	reports := k.reports()
	target := k.target("s", "a", "b")
	k.sync(t, target, map[string]string{"a": "3", "b": "2"})
	k.expectForeign(t, k.get(t, "s"), map[string]string{"a": "3", "b": "2"})
	if err := reports["writing secrets of namespace "+k.ns]; err == nil || !strings.Contains(err.Error(), "the verb patch") {
		t.Errorf("the report is %v", err)
	}
	revision := k.get(t, "s").Annotations[targets.RevisionAnnotation]
	if revision == "" {
		t.Error("the write raised no revision")
	}

	// Also b, which had its value already, is ours: nothing is left to be done.
	if calls := k.wire.since(func() { k.sync(t, target, map[string]string{"a": "3", "b": "2"}) }); !slices.Equal(calls, []string{"GET"}) {
		t.Errorf("for nothing the calls are %q", calls)
	}
	k.as(t, "get", "update") // another process
	if calls := k.wire.since(func() { k.sync(t, target, map[string]string{"a": "3", "b": "2"}) }); !slices.Equal(calls, []string{"GET"}) {
		t.Errorf("after a restart the calls are %q", calls)
	}

	// A key that left the map goes, whoever wrote it.
	k.sync(t, k.target("s", "a"), map[string]string{"a": "3"})
	k.expectForeign(t, k.get(t, "s"), map[string]string{"a": "3"})
	if now := k.get(t, "s").Annotations[targets.RevisionAnnotation]; now <= revision {
		t.Errorf("after revision %s comes %s", revision, now)
	}
}

// What was written by update goes when it is to go, though patch is granted by
// then; and the other way round.
func TestRightsChangeBetweenWrites(t *testing.T) {
	update, patch := []string{"get", "update"}, []string{"get", "patch"}
	for name, verbs := range map[string][2][]string{"patch granted": {update, patch}, "patch taken away": {patch, update}} {
		t.Run(name, func(t *testing.T) {
			k := newKube(t)
			k.make(t, "s", "", "foreign", "f")
			k.as(t, verbs[0]...)
			k.sync(t, k.target("s", "a", "b", "c"), map[string]string{"a": "1", "b": "2", "c": "3"})
			k.as(t, verbs[1]...)
			reports := k.reports()
			k.sync(t, k.target("s", "a", "b"), map[string]string{"a": "4", "b": "2"})
			k.expectData(t, "s", map[string]string{"foreign": "f", "a": "4", "b": "2"})
			for subject, err := range reports {
				if (err != nil) != (name == "patch taken away") {
					t.Errorf("the report of %s is %v", subject, err)
				}
			}
			if len(reports) != 1 {
				t.Errorf("there are %d reports", len(reports))
			}
			k.sync(t, k.target("s", "a"), map[string]string{"a": "4"})
			k.expectData(t, "s", map[string]string{"foreign": "f", "a": "4"})
		})
	}
}

// An update meets the Secret as it was read, or is tried again: what others
// write meanwhile stays.
func TestUpdateAndOthersAtOnce(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "foreign", "f")
	k.as(t, "get", "update")
	k.wire.before(func() {
		_, err := k.secrets.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"data":{"late":"bA=="}}`), metav1.PatchOptions{FieldManager: "late"})
		must(t, err)
	})
	k.sync(t, k.target("s", "a"), map[string]string{"a": "1"})
	k.expectData(t, "s", map[string]string{"foreign": "f", "late": "l", "a": "1"})
}

func TestCreateWithoutPatch(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	k.as(t, "get", "update")
	if _, err := k.trySync(t.Context(), target, map[string]string{"a": "canary"}); err == nil || !strings.Contains(err.Error(), "the verb create") {
		t.Errorf("without create the error is %v", err)
	}
	k.as(t, "get", "update", "create")
	k.sync(t, target, map[string]string{"a": "1"})
	k.expectData(t, "s", map[string]string{"a": "1"})
	if calls := k.wire.since(func() { k.sync(t, target, map[string]string{"a": "1"}) }); !slices.Equal(calls, []string{"GET"}) {
		t.Errorf("for nothing the calls are %q", calls)
	}
}
