package kube_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/kubetest"
)

// reports takes what is reported, as "subject: error".
type reports chan string

func (r reports) Report(subject string, err error) {
	select {
	case r <- fmt.Sprintf("%s: %v", subject, err):
	default:
	}
}

// events lists those of a namespace, oldest first.
func events(t *testing.T, c *kube.Client, namespace string) []corev1.Event {
	t.Helper()
	list, err := c.Core.Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items
}

func TestAnEventIsSeenAtItsObject(t *testing.T) {
	t.Parallel()
	c, ns := connect(t, ""), cluster.Namespace(t)
	s := create(t, secrets(t, ns), managed("db", nil))
	heard := make(reports, 100)
	r := c.NewRecorder("syncer", heard)
	about := kube.SecretReference(ns, "db", s.UID)
	stop := running(t, r.Run)
	r.Event(about, corev1.EventTypeWarning, "SyncFailed", strings.Repeat("ü", 3000))
	if got := next(t, heard, "a report"); got != "events in namespace "+ns+": <nil>" {
		t.Errorf("reported %q", got)
	}
	r.Event(about, corev1.EventTypeNormal, "Synced", "2 keys")
	stop() // sends what waits
	all := events(t, c, ns)
	if len(all) != 2 {
		t.Fatalf("events %+v, want two", all)
	}
	e := all[0]
	if len(e.Message) > 1024 || e.Type != "Warning" || e.Reason != "SyncFailed" || e.InvolvedObject != about || e.Source.Component != "syncer" || e.ReportingController != "syncer" || e.Count != 1 {
		t.Errorf("event %+v", e)
	}
	if e = all[1]; e.Type != "Normal" || e.Reason != "Synced" || e.Message != "2 keys" {
		t.Errorf("event %+v", e)
	}
}

func TestEventsThatRepeatAreCountedAndThoseThatVaryAreCombined(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	cluster.Bind(t, ns, "app", rules("events", "create", "patch"))
	c := connect(t, cluster.Token(t, ns, "app"))
	const turns = 10
	heard := make(reports, 1000)
	r := c.NewRecorder("syncer", heard)
	running(t, r.Run)
	about := kube.SecretReference(ns, "db", "1")
	for i := range turns { // in turns, so that each is news
		r.Event(about, corev1.EventTypeNormal, "Synced", "2 keys")
		r.Event(about, corev1.EventTypeWarning, "SyncFailed", "no route to host")
		r.Event(kube.SecretReference(ns, "web", "2"), corev1.EventTypeWarning, "SyncFailed", fmt.Sprint("try ", i))
		r.Event(kube.SecretReference(ns, "web", "2"), corev1.EventTypeWarning, "SyncFailed", fmt.Sprint("again ", i))
	}
	for range 4 * turns {
		if got := next(t, heard, "a report"); !strings.HasSuffix(got, ": <nil>") {
			t.Error(got)
		}
	}
	got := map[string]int32{}
	for _, e := range events(t, connect(t, ""), ns) {
		text := e.Message
		if strings.HasPrefix(text, "(combined") {
			text = "(combined)"
		} else if e.InvolvedObject.Name == "web" {
			text = "varies"
		}
		got[e.InvolvedObject.Name+" "+text] += e.Count
	}
	want := map[string]int32{"db 2 keys": 10, "db no route to host": 10, "web varies": 9, "web (combined)": 11}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

// One reason that comes too often does not silence another.
func TestAFloodOfOneReasonIsCutOff(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	cluster.Bind(t, ns, "app", rules("events", "create", "patch"))
	heard := make(reports, 1000)
	r := connect(t, cluster.Token(t, ns, "app")).NewRecorder("syncer", heard)
	about := kube.SecretReference(ns, "db", "1")
	for i := range 100 {
		r.Event(about, corev1.EventTypeWarning, "SyncFailed", fmt.Sprint("try ", i))
	}
	r.Event(about, corev1.EventTypeWarning, "InvalidDefinition", "the map is not YAML")
	running(t, r.Run)
	other := func(e corev1.Event) bool { return e.Reason == "InvalidDefinition" }
	for admin := connect(t, ""); !slices.ContainsFunc(events(t, admin, ns), other); {
		next(t, heard, "a report while the other reason is missing") // one for each Event that is sent
	}
	if n := len(cluster.Calls(t, kubetest.ByUser(kubetest.UserName(ns, "app")))); n > 30 {
		t.Errorf("%d calls for 100 events of one reason", n)
	}
}

func TestWithoutTheRightEventsAreLostAndReported(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	c := connect(t, cluster.Token(t, ns, "app"))
	heard := make(reports, 100)
	r := c.NewRecorder("syncer", heard)
	running(t, r.Run)
	about := kube.SecretReference(ns, "db", "1")
	r.Event(about, corev1.EventTypeNormal, "Synced", "2 keys")
	if got := next(t, heard, "a report"); !strings.HasPrefix(got, "events in namespace "+ns+": ") || !strings.Contains(got, "forbidden") {
		t.Errorf("reported %q", got)
	}
	cluster.Bind(t, ns, "app", rules("events", "create", "patch"))
	// What did not get through is no old news.
	r.Event(about, corev1.EventTypeNormal, "Synced", "2 keys")
	if got := next(t, heard, "a report"); !strings.HasSuffix(got, ": <nil>") {
		t.Errorf("reported %q, want that all is well", got)
	}
	if all := events(t, connect(t, ""), ns); len(all) != 1 {
		t.Errorf("events %+v, want one", all)
	}
}

func TestAnAPIServerThatIsSilentDoesNotHoldUpTheEnd(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	r := c.NewRecorder("syncer", make(reports))
	cluster.PauseAPIServer(t)
	defer cluster.ContinueAPIServer(t)
	stop := running(t, r.Run)
	for i := range 100 {
		r.Event(kube.SecretReference(ns, fmt.Sprint(i), ""), corev1.EventTypeNormal, "Synced", "2 keys")
	}
	stop()
}

// A burst is reported once, at its end, with all Events that it lost.
func TestABurstOfEventsIsReportedOnce(t *testing.T) {
	c := played(t, func(_ http.ResponseWriter, _ *http.Request, say func(string, ...any)) {
		say(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"n"}}`)
	})
	const sent, lost = 1000, 100
	heard := make(reports, sent)
	r := c.NewRecorder("syncer", heard)
	for i := range sent + lost {
		r.Event(kube.SecretReference("n", fmt.Sprint(i), "u"), corev1.EventTypeWarning, "SyncFailed", "no route to host")
	}
	running(t, r.Run)
	for i := range sent {
		got := next(t, heard, "a report")
		if last := i == sent-1; last != strings.Contains(got, fmt.Sprintf("%d events are lost", lost)) {
			t.Fatalf("report %d is %q", i, got)
		}
	}
}
