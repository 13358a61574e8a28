package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// secretOf makes a Secret with so many entries.
func secretOf(namespace, name string, entries int) *targets.Target {
	t := &targets.Target{Key: targets.KubeSecretKey(namespace, name), Secret: &targets.Secret{Namespace: namespace, Name: name}}
	for i := range entries {
		t.Entries = append(t.Entries, targets.Entry{Alias: fmt.Sprintf("k%d", i), Variable: fmt.Sprintf("%s/%d", name, i)})
	}
	return t
}

// budgeted is a Set with room for so many entries in each namespace.
func budgeted(entries int) (*records.Set, *records.Lane) {
	s := &records.Set{Budget: entries * targets.EntryMemory}
	return s, s.Lane("")
}

// refused reports whether a Secret is kept as one that is left as it is.
func refused(t *testing.T, s *records.Set, name string) bool {
	t.Helper()
	got, ok := s.Get(targets.KubeSecretKey("ns", name))
	if !ok {
		t.Fatalf("%s is not kept", name)
	}
	return len(got.Entries) == 0 && got.Secret.HoldAll && strings.Contains(fmt.Sprint(got.Secret.Faults), "namespaceMemory")
}

func TestASecretBeyondTheBudgetFailsAlone(t *testing.T) {
	s, l := budgeted(100)
	l.Put(secretOf("ns", "first", 60))
	l.Put(secretOf("ns", "second", 60))
	l.Put(secretOf("ns", "third", 5))
	l.Put(secretOf("other", "second", 60))
	if refused(t, s, "first") || !refused(t, s, "second") || refused(t, s, "third") {
		t.Error("not the one that exceeds it is refused")
	}
	if ids := l.Variables(); slices.Contains(ids, "second/59") == false || len(ids) != 60+5+60 {
		t.Errorf("%d variables are used", len(ids))
	}

	if got := s.Waiting(10); got != nil {
		t.Errorf("nothing has made room, and %v are to be put again", got)
	}
	l.Put(secretOf("ns", "first", 1))
	if got := s.Waiting(10); !slices.Equal(got, []targets.Key{"secret/ns/second"}) {
		t.Fatalf("%v are to be put again", got)
	}
	l.Put(secretOf("ns", "second", 60))
	if refused(t, s, "second") || s.Waiting(10) != nil {
		t.Error("there is room for it now")
	}
	l.Put(secretOf("ns", "first", 60)) // grows
	if !refused(t, s, "first") || refused(t, s, "second") {
		t.Error("another than the one that grew is refused")
	}
}

func TestSecretsWithoutAnyRoomAreNotKept(t *testing.T) {
	s, l := budgeted(30)
	for i := range 1000 {
		l.Put(secretOf("ns", fmt.Sprint(i), 1))
	}
	kept := len(s.Records())
	if kept == 0 || kept > 15 {
		t.Errorf("%d are kept", kept)
	}
	last := targets.KubeSecretKey("ns", "999")
	if s.OverBudget(last) == "" || s.OverBudget("secret/ns/0") != "" {
		t.Error("it is not said which are not kept")
	}
	if got := s.OverBudgetNamespaces(); !slices.Equal(got, []string{"ns"}) {
		t.Errorf("Secrets are not kept in the namespaces %q", got)
	}
	s.Delete(last)
	if s.OverBudget(last) != "" {
		t.Error("one that is gone still waits")
	}
	s.Delete("secret/ns/0")
	if got := s.Waiting(3); len(got) != 3 {
		t.Errorf("%v are to be put again", got)
	}
}

// One whose definition was dropped is read alone, and stays as it was until then.
func TestADroppedDefinitionIsToBeRead(t *testing.T) {
	s, l := budgeted(100)
	dropped := func() *targets.Target { return secretOf("ns", "a", 0) }
	for _, was := range []int{0, 1} {
		l.OmitOverBudget(dropped())
		if refused(t, s, "a") != (was == 0) {
			t.Errorf("with %d entries before: refused is not what it is", was)
		}
		if got := s.Waiting(1); len(got) != 1 {
			t.Fatalf("%v are to be read", got)
		}
		l.Put(secretOf("ns", "a", 1))
		if s.Waiting(1) != nil || refused(t, s, "a") {
			t.Error("it still waits")
		}
	}
}

// What a list of variables, or somebody who forges what is remembered, brings in
// counts too.
func TestWildcardsCountWhatTheyBringIn(t *testing.T) {
	s, l := budgeted(100)
	wild := secretOf("ns", "wild", 0)
	wild.Entries = []targets.Entry{{Alias: "*", Variable: "*"}}
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprintf("v/%03d", i))
	}
	l.Expand(ids, nil)
	l.Put(wild)
	l.Expand(ids, nil)
	if refused(t, s, "wild") {
		t.Fatal("50 variables exceed it")
	}
	var more []string
	for i := range 100 {
		more = append(more, fmt.Sprintf("forged/%03d", i))
	}
	l.Recall(wild.Key, more...)
	if !refused(t, s, "wild") {
		t.Error("150 variables do not")
	}
	huge := secretOf("ns", "huge", 0)
	huge.Entries = wild.Entries
	for i := range targets.MaxEntries + 1 {
		ids = append(ids, fmt.Sprintf("h/%05d", i))
	}
	if got := huge.Expand(ids); len(got.Entries) > 0 || !strings.Contains(fmt.Sprint(got.Secret.Faults), fmt.Sprint(targets.MaxEntries)) {
		t.Errorf("%d entries, faults %q", len(got.Entries), got.Secret.Faults)
	}
}

// TestBoundsOfTheBudget: a Secret that fits exactly is kept. One that does not is refused,
// and one without room for that is left out. Refusing one again makes no room.
func TestBoundsOfTheBudget(t *testing.T) {
	first, second := secretOf("ns", "first", 3), secretOf("ns", "second", 3)
	whole, small := first.Memory()+second.Memory(), first.Memory()+second.Refused("").Memory()
	for _, c := range []struct {
		budget        int
		fits, isThere bool
	}{
		{whole - 1, false, true}, {whole, true, true}, {whole + 1, true, true},
		{small - 1, false, false}, {small, false, true}, {small + 1, false, true},
	} {
		s := &records.Set{Budget: c.budget}
		l := s.Lane("")
		l.Put(first)
		for range 2 {
			l.Put(second)
			_, there := s.Get(second.Key)
			if there != c.isThere || there && refused(t, s, "second") == c.fits {
				t.Errorf("budget %d of %d or %d: it is there %t", c.budget, whole, small, there)
			}
			if got := s.Waiting(10); got != nil {
				t.Errorf("budget %d of %d or %d: %v may fit now, though nothing was released", c.budget, whole, small, got)
			}
		}
		s.Delete("secret/ns/third") // which was never there
		l.Put(first)
		if got := s.Waiting(10); got != nil {
			t.Errorf("budget %d of %d or %d: %v may fit after a change of nothing", c.budget, whole, small, got)
		}
	}
}

// TestBoundsOfExpanding: a Secret may have as many variables as the limit says.
func TestBoundsOfExpanding(t *testing.T) {
	for less := -1; less <= 1; less++ {
		wild := secretOf("ns", "wild", 0)
		wild.Entries = []targets.Entry{{Alias: "*", Variable: "*"}}
		var ids []string
		for i := range targets.MaxEntries + less {
			ids = append(ids, fmt.Sprintf("v/%05d", i))
		}
		if got := wild.Expand(ids); (len(got.Entries) == len(ids)) != (less <= 0) || got.Secret.HoldAll != (less > 0) {
			t.Errorf("the bound%+d: %d entries, faults %q", less, len(got.Entries), got.Secret.Faults)
		}
	}
}
