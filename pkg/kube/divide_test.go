package kube

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// remarked is the last remark and report.
type remarked struct{ remark, report error }

func (r *remarked) Remark(_ string, err error) { r.remark = err }
func (r *remarked) Report(_ string, err error) { r.report = err }

// A Deployment serves what its selector matches, unless an older one's does too. Each step
// continues the one before.
func TestNamespacesAreDivided(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	about := &remarked{}
	d := (&Client{}).NewDivision("n", "own", about, zap.New(core))
	claim := func(lease, selector string) Claim {
		s, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		return Claim{lease, s}
	}
	namespace := func(name, team string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	own, older, none := claim("own", "team in (a, b)"), claim("older", "team=b"), claim("other", "team=c")
	for _, step := range []struct {
		what       string
		namespaces []*metav1.PartialObjectMetadata
		claims     []Claim
		served     []string
		changed    bool
		remark     string
		logged     []string
	}{
		{"at first", []*metav1.PartialObjectMetadata{namespace("y", "a"), namespace("x", "b"), namespace("z", "c")}, []Claim{own, none}, []string{"x", "y"}, true, "<nil>", []string{"Namespaces joined x, y"}},
		{"again", []*metav1.PartialObjectMetadata{namespace("y", "a"), namespace("x", "b"), namespace("z", "c")}, []Claim{own, none}, []string{"x", "y"}, false, "<nil>", nil},
		{"beside an older one", []*metav1.PartialObjectMetadata{namespace("y", "a"), namespace("x", "b")}, []Claim{older, own}, []string{"y"}, true,
			"selectors overlap\nnot served: the selector of the older Lease older also matches the namespace x", []string{"Namespaces left x"}},
		{"with another label", []*metav1.PartialObjectMetadata{namespace("y", "d"), namespace("x", "b")}, []Claim{older, own}, nil, true,
			"selectors overlap\nnot served: the selector of the older Lease older also matches the namespace x", []string{"No Deployment serves these namespaces any more; their Secrets stay as they are y"}},
		{"without an own claim", []*metav1.PartialObjectMetadata{namespace("x", "b")}, []Claim{older}, nil, false, "<nil>", nil},
	} {
		d.known = true
		if changed := d.divide(step.namespaces, step.claims); changed != step.changed || !slices.Equal(d.served, step.served) {
			t.Errorf("%s: serves %q, changed %t", step.what, d.served, changed)
		}
		if got := fmt.Sprint(about.remark); got != step.remark {
			t.Errorf("%s: remarked %q, want %q", step.what, got, step.remark)
		}
		var logged []string
		for _, e := range logs.TakeAll() {
			logged = append(logged, fmt.Sprint(e.Message, " ", e.ContextMap()["namespaces"]))
		}
		if !slices.Equal(logged, step.logged) {
			t.Errorf("%s: logged %q, want %q", step.what, logged, step.logged)
		}
	}
}
