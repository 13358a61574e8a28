package kubesecrets

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// TestBoundsOfMembers: what may be written can be read again.
func TestBoundsOfMembers(t *testing.T) {
	few := []string{rand.Text()}
	for what, of := range map[string]func(less int) (ids []string, beside int){
		"the number": func(less int) (ids []string, _ int) {
			for i := range targets.MaxEntries + less {
				ids = append(ids, fmt.Sprint("a", i))
			}
			return ids, 0
		},
		"their bytes": func(less int) (ids []string, _ int) {
			return []string{strings.Repeat("a", mostMembers+less-len(`[""]`))}, 0
		},
		"the annotations": func(less int) (ids []string, beside int) {
			own := len(targets.MembersAnnotation) + len(membersAnnotation(few)[targets.MembersAnnotation])
			return few, validation.TotalAnnotationSizeLimitB + less - own
		},
	} {
		for less := -1; less <= 1; less++ {
			ids, beside := of(less)
			live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{targets.MembersAnnotation: strings.Repeat("x", 1000)}}}
			if beside > 0 {
				live.Annotations["x"] = strings.Repeat("x", beside-1)
			}
			e := &secretEdit{members: ids}
			if fault := e.membersFault(live); (fault == "") != (less <= 0) {
				t.Errorf("%s, the bound%+d: %q", what, less, fault)
			}
			live.Annotations[targets.MembersAnnotation] = membersAnnotation(ids)[targets.MembersAnnotation]
			owned, err := ownedFields([]metav1.ManagedFieldsEntry{managed(targets.FieldManager, metav1.ManagedFieldsOperationApply,
				`{"f:metadata":{"f:annotations":{"f:`+targets.MembersAnnotation+`":{}}}}`)})
			if err != nil {
				t.Fatal(err)
			}
			if got := membersOf(live, owned); (len(got) == len(ids)) != (less <= 0 || beside > 0) {
				t.Errorf("%s, the bound%+d: %d of %d are read", what, less, len(got), len(ids))
			}
		}
	}
	if (&secretEdit{}).membersFault(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"x": strings.Repeat("x", 1<<20)}}}) != "" {
		t.Error("a write without members is refused for the annotations of others")
	}
}

// TestAForgedListIsReadToItsBound: whoever may write a Secret can forge a list that is easy to
// pack.
func TestAForgedListIsReadToItsBound(t *testing.T) {
	const ids = 10 * targets.MaxEntries
	text := strings.NewReader("[" + strings.Repeat(`"v", `, ids) + `"v"]`)
	all := text.Len()
	if got := decodeMembers(text); got != nil || text.Len() < all*8/10 {
		t.Errorf("%d bytes of %d are left, and %d ids are read", text.Len(), all, len(got))
	}
	for _, forged := range []string{"", "null", "{}", `["v"`, `["v"]]`, `["v"] ["v"]`, `["v", 1]`} {
		if got := decodeMembers(strings.NewReader(forged)); got != nil {
			t.Errorf("of %q are read %q", forged, got)
		}
	}
}

func TestBoundsOfStamps(t *testing.T) {
	for less := -1; less <= 1; less++ {
		set := &records.Set{}
		target := &targets.Target{Key: targets.KubeSecretKey("n", "s"), Secret: &targets.Secret{Namespace: "n", Name: "s"}}
		set.Lane("").Put(target)
		RecordBeforeFirstSync(set, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", Annotations: map[string]string{
			targets.RevisionAnnotation: strings.Repeat("1", 40), targets.RevisedAnnotation: strings.Repeat("2", 40), targets.FilledAnnotation: strings.Repeat("3", 20+less),
		}}})
		r, _ := set.Lane("").Begin(target.Key)
		if known := foreseen(r) != nil; known != (less <= 0) {
			t.Errorf("with a stamp of the bound%+d, the Secret is known: %t", less, known)
		}
	}
}

// TestBoundsOfData: the data of a Secret may have 1 MiB, together with the keys of others.
func TestBoundsOfData(t *testing.T) {
	for less := -1; less <= 1; less++ {
		e := &secretEdit{data: map[string][]byte{"a": make([]byte, corev1.MaxSecretSize/2), "theirs": make([]byte, corev1.MaxSecretSize/2+less)}}
		faults := e.faults(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, &targets.Target{Secret: &targets.Secret{}}, sinks.Changes{})
		if (len(faults) == 0) != (less <= 0) {
			t.Errorf("the bound%+d: %q", less, faults)
		}
	}
}
