package sources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/proctest"
)

// watched is Secrets that hands on what it is called with: "defined NAME MAP",
// "changed NAME MAP", "gone NAME" and "unread NAME FORBIDDEN". What it remarks
// on begins with "limited".
type watched struct {
	*sources.Secrets
	told, reports chan string
}

func watchedSecrets(t *testing.T, namespace string, interval time.Duration, names ...string) watched {
	t.Helper()
	told := make(chan string, 10_000)
	reports, report := reporting()
	return watched{told: told, reports: reports, Secrets: &sources.Secrets{
		Client: client(t, namespace), Namespace: namespace, Names: names, Interval: interval,
		Handler: handedOn{t, namespace, told}, Reporter: report,
	}}
}

// handedOn hands on what the Secrets of a namespace call it with.
type handedOn struct {
	*testing.T
	namespace string
	told      chan<- string
}

func (h handedOn) Upsert(s *kube.Secret, redefined bool) {
	if s.Namespace != h.namespace {
		h.Errorf("told of namespace %s", s.Namespace)
	}
	word := "changed "
	if redefined {
		word = "defined "
	}
	text, _ := s.ConjurMap()
	h.told <- word + s.Name + " " + text
}

func (h handedOn) Gone(_, name string) { h.told <- "gone " + name }

func (h handedOn) Unread(_, name string, err error) {
	h.told <- fmt.Sprintf("unread %s %v", name, apierrors.IsForbidden(err))
}

func complete(s watched) func() bool { return func() bool { return s.Complete() == nil } }

func TestWhatChangesInALabelledSecretIsToldApart(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", map[string]string{"conjur-map": "one", "k": "v"})
	allow(t, ns, "secrets", "list watch")
	s := watchedSecrets(t, ns, time.Hour)
	if s.Complete() == nil {
		t.Error("complete before it ran")
	}
	running(t, s.Run)
	expect(t, s.told, "defined a one")
	proctest.Eventually(t, "complete", complete(s))

	for _, step := range []struct {
		change func(*corev1.Secret)
		want   string
	}{
		{func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "two"} }, "defined a two"},
		{func(s *corev1.Secret) { s.StringData = map[string]string{"k": "w"} }, "changed a two"},
		{func(s *corev1.Secret) { delete(s.Data, "k") }, "changed a two"},
		{func(s *corev1.Secret) { annotate(s, []string{"conjur.org/conjur-secrets.g", "- x"}) }, "defined a two"},
		{func(s *corev1.Secret) { annotate(s, []string{"theirs", "x"}) }, "changed a two"},
		{func(s *corev1.Secret) { // what our own write looks like
			s.StringData = map[string]string{"k": "x"}
			annotate(s, []string{"conjur.org/secret-revision", "2", "conjur.org/secret-revised", "2026-01-02T03:04:05Z", "conjur.org/secret-variables", "x"})
		}, "changed a two"},
		{func(s *corev1.Secret) { delete(s.Labels, targets.ManagedLabel) }, "gone a"},
		{func(s *corev1.Secret) { s.Labels = map[string]string{targets.ManagedLabel: "true"} }, "defined a two"},
	} {
		changeSecret(t, ns, "a", step.change)
		expect(t, s.told, step.want)
	}
	deleteSecret(t, ns, "a")
	expect(t, s.told, "gone a")
	secret(t, ns, "a", map[string]string{"conjur-map": "two"})
	expect(t, s.told, "defined a two")
	if n := len(s.reports); n != 0 {
		t.Errorf("reported %s", <-s.reports)
	}
}

func TestWhatHappenedWhileTheAPIServerWasAwayIsTold(t *testing.T) {
	ns := cluster.Namespace(t)
	for _, name := range []string{"a", "anew", "b", "c"} {
		secret(t, ns, name, map[string]string{"conjur-map": "one"})
	}
	allow(t, ns, "secrets", "list watch")
	s, link := watchedSecrets(t, ns, time.Hour), newLink(t)
	s.Client = link.client(t, ns)
	running(t, s.Run)
	collect(t, s.told, "defined a one", "defined anew one", "defined b one", "defined c one")
	link.cut()
	await(t, s.reports, "watch of secrets in namespace "+ns+": ", "refused")
	deleteSecret(t, ns, "anew")
	secret(t, ns, "anew", map[string]string{"conjur-map": "one"})
	deleteSecret(t, ns, "b")
	changeSecret(t, ns, "c", func(s *corev1.Secret) { s.StringData = map[string]string{"k": "v"} })
	link.mend(t)
	await(t, s.reports, "watch of secrets in namespace "+ns+": <nil>")
	collect(t, s.told, "defined anew one", "changed c one", "gone b")
	secret(t, ns, "d", nil)
	await(t, s.told, "defined d ")
}

func TestNamedSecretsAreWatchedUnderARoleThatNamesThem(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", map[string]string{"conjur-map": "one"})
	allow(t, ns, "secrets", "get list watch", "a", "b")
	s := watchedSecrets(t, ns, time.Hour, "a", "b")
	running(t, s.Run)
	await(t, s.told, "defined a one")
	proctest.Eventually(t, "complete", complete(s)) // b is told to be missing by then
	secret(t, ns, "c", nil)
	secret(t, ns, "b", map[string]string{"conjur-map": "two"})
	await(t, s.told, "defined b two")
	changeSecret(t, ns, "b", func(s *corev1.Secret) { s.Labels = nil }) // of no importance here
	expect(t, s.told, "changed b two")
	deleteSecret(t, ns, "b")
	expect(t, s.told, "gone b")
	if got := calls(t, ns); got["watch"] != 2 || len(got) != 1 {
		t.Errorf("calls %v, want two watches", got)
	}
}

func TestAMissingNamedSecretIsToldOnce(t *testing.T) {
	ns := cluster.Namespace(t)
	allow(t, ns, "secrets", "get", "a")
	s := watchedSecrets(t, ns, time.Millisecond, "a")
	running(t, s.Run)
	expect(t, s.told, "gone a")
	proctest.Eventually(t, "ten looks", func() bool { return calls(t, ns)["get"] > 10 })
	secret(t, ns, "a", nil)
	expect(t, s.told, "defined a ")
	deleteSecret(t, ns, "a")
	expect(t, s.told, "gone a")
}

func TestWithoutTheRightToWatchNamedSecretsAreReadAtEachTick(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", map[string]string{"conjur-map": "one"})
	allow(t, ns, "secrets", "get", "a")
	s := watchedSecrets(t, ns, 20*time.Millisecond, "a")
	running(t, s.Run)
	expect(t, s.told, "defined a one")
	proctest.Eventually(t, "complete", complete(s))
	if err := s.Complete(); err != nil {
		t.Error(err)
	}
	changeSecret(t, ns, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"k": "v"} })
	expect(t, s.told, "changed a one")
	proctest.Eventually(t, "many looks", func() bool { return calls(t, ns)["get"] > 60 })
	subject := "watch of secrets in namespace " + ns + ": "
	await(t, s.reports, subject+"limited: a: ", "forbidden", "grant the verbs list and watch", "reading it every 20ms")
	if n := len(s.reports); n != 0 {
		t.Errorf("said once, and then %s", <-s.reports)
	}
	if got := calls(t, ns); got["watch"] > got["get"]+2 || got["list"] > 1 {
		t.Errorf("calls %v: more than a try to watch each time", got)
	}

	revoke := allow(t, ns, "secrets", "list watch", "a")
	await(t, s.reports, subject+"<nil>")
	before := calls(t, ns)["get"]
	changeSecret(t, ns, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"k": "w"} })
	expect(t, s.told, "changed a one")
	if got := calls(t, ns); got["get"] != before {
		t.Errorf("%d reads while it is watched", got["get"]-before)
	}

	// A watch that stands is not taken away with the right; the next one is.
	revoke()
	cluster.StopAPIServer(t)
	cluster.StartAPIServer(t)
	await(t, s.reports, subject+"limited: a: ", "forbidden")
	changeSecret(t, ns, "a", func(s *corev1.Secret) { s.StringData = map[string]string{"k": "x"} })
	expect(t, s.told, "changed a one")
}

func TestANamespaceWithoutRightsDoesNotStopAnother(t *testing.T) {
	closed, open := cluster.Namespace(t), cluster.Namespace(t)
	secret(t, closed, "a", nil)
	secret(t, open, "b", nil)
	allow(t, open, "secrets", "list watch")
	refused, well := watchedSecrets(t, closed, 10*time.Millisecond), watchedSecrets(t, open, time.Hour)
	running(t, refused.Run)
	running(t, well.Run)
	expect(t, well.told, "defined b ")
	proctest.Eventually(t, "complete", complete(well))
	await(t, refused.reports, "watch of secrets in namespace "+closed+": ", "forbidden")
	if err := refused.Complete(); !apierrors.IsForbidden(err) {
		t.Errorf("the namespace without rights is %v, want forbidden", err)
	}
	allow(t, closed, "secrets", "list watch")
	expect(t, refused.told, "defined a ")
	await(t, refused.reports, "watch of secrets in namespace "+closed+": <nil>")
	proctest.Eventually(t, "complete", complete(refused))
}

// The Secrets Provider's own role lets it list, but not watch.
func TestWithoutTheRightToWatchLabelledSecretsAreListedAtEachTick(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", nil)
	allow(t, ns, "secrets", "list")
	s := watchedSecrets(t, ns, 20*time.Millisecond)
	running(t, s.Run)
	expect(t, s.told, "defined a ")
	secret(t, ns, "b", nil)
	expect(t, s.told, "defined b ")
	deleteSecret(t, ns, "a")
	expect(t, s.told, "gone a")
	await(t, s.reports, "limited: ", "forbidden", "reading it every 20ms")
	if got := calls(t, ns); got["watch"] > got["list"]+2 {
		t.Errorf("calls %v: more than a try to watch each time", got)
	}
}

func TestPrimingTellsWhatIsThereOnce(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", map[string]string{"conjur-map": "one"})
	secret(t, ns, "b", nil)
	allow(t, ns, "secrets", "list watch")
	s := watchedSecrets(t, ns, time.Hour)
	s.Prime(t.Context())
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	collect(t, s.told, "defined a one", "defined b ")
	deleteSecret(t, ns, "a")
	s.Prime(t.Context())
	expect(t, s.told, "gone a")
	changeSecret(t, ns, "b", func(s *corev1.Secret) { s.StringData = map[string]string{"conjur-map": "two"} })
	running(t, s.Run) // tells only what is new since
	expect(t, s.told, "defined b two")
}

func TestADroppedDefinitionThatCannotBeReadIsAnError(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", map[string]string{"conjur-map": "one"})
	allow(t, ns, "secrets", "get list watch")
	s := watchedSecrets(t, ns, time.Hour)
	s.Definitions = 1
	running(t, s.Run)
	expect(t, s.told, "defined a ")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Reread(ended, ns, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("it cannot be read: %v", err)
	}
	if err := s.Reread(t.Context(), ns, "a"); err != nil {
		t.Error(err)
	}
	expect(t, s.told, "defined a one")
}

func TestPrimingOfNamedSecretsTellsTheMissingFromTheForbidden(t *testing.T) {
	ns := cluster.Namespace(t)
	secret(t, ns, "a", nil)
	secret(t, ns, "forbidden", nil)
	allow(t, ns, "secrets", "get", "a", "missing")
	s := watchedSecrets(t, ns, time.Hour, "a", "forbidden", "missing")
	s.Prime(t.Context())
	err := s.Complete()
	if !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), ns+"/forbidden") || strings.Contains(fmt.Sprint(err), ns+"/missing") {
		t.Errorf("error %v, want that one is forbidden", err)
	}
	expect(t, s.told, "defined a ", "unread forbidden true", "gone missing")
	await(t, s.reports, "secrets of "+ns+": ", "forbidden")
	s.Prime(t.Context())
	allow(t, ns, "secrets", "get", "forbidden")
	proctest.Eventually(t, "all read", func() bool { s.Prime(t.Context()); return s.Complete() == nil })
	expect(t, s.told, "defined forbidden ") // and not once more that it is unread
	await(t, s.reports, "secrets of "+ns+": <nil>")
}

func TestTheWatchOfSecretsEndsWhileTheAPIServerIsAway(t *testing.T) {
	ns := cluster.Namespace(t)
	allow(t, ns, "secrets", "get list watch")
	label, names := watchedSecrets(t, ns, time.Hour), watchedSecrets(t, ns, time.Hour, "a", "b", "c")
	stopLabel, stopNames := running(t, label.Run), running(t, names.Run)
	proctest.Eventually(t, "complete", func() bool { return label.Complete() == nil && names.Complete() == nil })
	cluster.StopAPIServer(t)
	await(t, label.reports, "refused")
	await(t, names.reports, "refused")
	stopLabel()
	stopNames()
	cluster.StartAPIServer(t)

	cluster.PauseAPIServer(t) // no answer at all
	stopLabel, stopNames = running(t, label.Run), running(t, names.Run)
	stopLabel()
	stopNames()
	cluster.ContinueAPIServer(t)
}
