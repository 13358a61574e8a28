package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type puts []string

func (p *puts) Put(_, now *Secret) { *p = append(*p, now.ResourceVersion) }
func (*puts) Gone(string, string)  {}
func (*puts) Report(error)         {}
func (*puts) Remark(error)         {}

// A list that repeats what is known, and is handed on late, brings nothing; the
// change that was stored meanwhile has an event of its own.
func TestARepetitionIsNotTheChangeThatFollowsIt(t *testing.T) {
	var heard puts
	w := (&Client{}).WatchSecrets(Selection{}, nil, &heard)
	at := func(version string) *Secret {
		return &Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", ResourceVersion: version}}
	}
	if err := w.informer.GetStore().Add(at("2")); err != nil {
		t.Fatal(err)
	}
	w.put(at("1"), at("1"))
	if len(heard) > 0 {
		t.Errorf("a repetition brought %v", heard)
	}
	w.put(at("1"), at("2"))
	if len(heard) != 1 {
		t.Errorf("a change brought %v", heard)
	}
}
