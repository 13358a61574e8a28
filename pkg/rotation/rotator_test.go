package rotation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

const enginePolicy = policy + `
- !variable jwt/control
- !variable jwt-public
- !variable url
- !permit { role: !host rotates, privileges: [read, execute, update], resource: [!variable jwt/control, !variable jwt-public, !variable url] }
- !host other
- !permit { role: !host other, privileges: [read, execute, update], resource: [!variable jwt, !variable jwt/control] }
`

// site is a server with a set, and who rotates it.
type site struct {
	*conjurdtest.Server
	t      *testing.T
	client *conjur.Client
	reader *conjur.Client // which no fault concerns
}

func newSite(t *testing.T, options ...conjurdtest.Option) *site {
	t.Helper()
	server := conjurdtest.Start(t, options...)
	server.Policy(enginePolicy)
	s := &site{Server: server, t: t}
	s.client, s.reader = s.as("rotates"), s.as("rotates")
	return s
}

func (s *site) as(host string) *conjur.Client {
	client, err := conjur.New(conjur.Config{
		ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA), RateLimit: 1e6, HTTPTimeout: 60 * time.Second,
		Authenticator: apiKey{"host/" + host, s.HostKey(host)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// doc returns the set as it is.
func (s *site) doc() *versions.Document {
	s.t.Helper()
	held, err := Set{Conjur: s.reader, ID: "jwt"}.Read(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	if held.Document == nil {
		return versions.New("")
	}
	return held.Document
}

// primary is the id of the set's primary.
func (s *site) primary() string {
	v, _ := s.doc().Primary()
	return v.ID
}

// keys is a set of keys that is rotated without any wait.
func (s *site) keys(consumers Consumers) Plan {
	return Plan{ID: "jwt", Generate: generate.Config{Random: 32}, Schedule: Schedule{Retry: time.Second}, Consumers: consumers}
}

// slow is a consumer that has what it is told to have.
type slow struct{ has, uses atomic.Pointer[string] }

func (c *slow) Introduced(_ context.Context, _ *versions.Document, v versions.Version, _ []Shown) Answer {
	return c.answer(&c.has, v.ID, "does not have "+v.ID)
}

func (c *slow) Left(_ context.Context, doc *versions.Document, _ versions.Version, _ []Shown) Answer {
	primary, _ := doc.Primary()
	return c.answer(&c.uses, primary.ID, "does not use "+primary.ID)
}

// Unasked is of any number of methods that Consumers may have besides.
func (c *slow) Unasked(context.Context, []Shown) []string { return []string{"shop/job-x"} }

func (c *slow) answer(is *atomic.Pointer[string], want, lacks string) Answer {
	if id := is.Load(); id != nil && *id == want {
		return Answer{Open: true}
	}
	return Answer{Waits: "the slow one " + lacks}
}

// rotator returns one for sets, with the client, as owner.
func (s *site) rotator(client *conjur.Client, owner string, sets ...Plan) (*Rotator, *heard) {
	values, err := variables.New(client, variables.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	h := &heard{}
	return New(Config{Conjur: client, Changes: values, Sets: sets, Owner: owner, Interval: 20 * time.Millisecond, Timeout: 20 * time.Second, Watch: time.Nanosecond, Calm: time.Millisecond, Listener: h}), h
}

// through returns a Rotator like r that uses another client.
func through(client Client, r *Rotator) *Rotator {
	config := r.config
	config.Conjur = client
	return New(config)
}

// heard collects Events.
type heard struct {
	mu  sync.Mutex
	all []Event
}

func (h *heard) Rotated(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

func (h *heard) Failed(set, step string) { h.Rotated(Event{Reason: "failed " + set, Message: step}) }

// has reports whether a set had an Event for that reason.
func (h *heard) has(set, reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.all, func(e Event) bool { return e.Set == set && e.Reason == reason })
}

func (h *heard) reasons() (text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		text += e.Reason + ": " + e.Message + " " + e.Result + "\n"
	}
	return text
}

// run runs an engine until the test, or stop, ends it.
func run(t *testing.T, r *Rotator) (stop func()) { return proctest.Running(t, r.Run) }

// until waits until the set is as it should be.
func (s *site) until(what string, is func(*versions.Document) bool) (doc *versions.Document) {
	s.t.Helper()
	met := false
	defer func() {
		if !met && doc != nil {
			s.t.Logf("the log of the set is %v", doc.Log)
		}
	}()
	proctest.Eventually(s.t, what, func() bool { doc = s.doc(); met = is(doc); return met })
	return doc
}

// idleWith reports whether the set is idle with another primary than that.
func idleWith(not string) func(*versions.Document) bool {
	return func(d *versions.Document) bool {
		primary, ok := d.Primary()
		return ok && primary.ID != not && d.Stage() == "idle"
	}
}

func (s *site) command(verb string, c versions.Command) {
	s.t.Helper()
	c.Verb = verb
	if c.At.IsZero() {
		c.At = time.Now()
	}
	proctest.Eventually(s.t, "no other command is pending", func() bool {
		err := Set{Conjur: s.reader, ID: "jwt"}.SendCommand(context.Background(), c)
		if err != nil && !errors.Is(err, ErrPending) {
			s.t.Fatal(err)
		}
		return err == nil
	})
}

func TestARotationByItself(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, options...)
			r, heard := s.rotator(s.client, "me", s.keys(nil))
			run(t, r)
			first, _ := s.until("the set begins", idleWith("")).Primary()
			s.command("now", versions.Command{})
			doc := s.until("a second key", idleWith(first.ID))
			second, _ := doc.Primary()
			if old, _ := doc.Version(first.ID); old.State != versions.Retired || old.Parts != nil {
				t.Errorf("the first key is %s with %v", old.State, old.PartNames())
			}
			for _, what := range []string{"RotationStarted: made " + second.ID, "RotationPromoted: " + second.ID + " is the primary " + ResultPromoted, "RotationDone: retired " + first.ID} {
				proctest.Eventually(t, what, func() bool { return strings.Contains(heard.reasons(), what) })
			}
		})
	}
}

func TestASilentConsumerHoldsTheRotation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	silent := &slow{}
	r, heard := s.rotator(s.client, "me", s.keys(silent))
	run(t, r)
	s.until("the first key needs nobody", idleWith(""))
	s.command("now", versions.Command{})
	doc := s.until("a second key", func(d *versions.Document) bool { _, coming := d.Coming(); return coming })
	coming, _ := doc.Coming()
	proctest.Eventually(t, "an Event that names the silent one", func() bool {
		return strings.Contains(heard.reasons(), "RotationWaiting: introduce: the slow one does not have "+coming.ID)
	})
	says := func(waits string) func() bool {
		return func() bool {
			reports := r.Reports()
			return len(reports) == 1 && reports[0].WaitsFor == waits && slices.Equal(reports[0].Unasked, silent.Unasked(t.Context(), nil))
		}
	}
	proctest.Eventually(t, "status to name both", says("the slow one does not have "+coming.ID))
	s.command("pause", versions.Command{})
	proctest.Eventually(t, "the reason of a pause", says(`it is paused; to go on, "resume" it`))
	s.command("resume", versions.Command{})
	proctest.Eventually(t, "the gate once more", says("the slow one does not have "+coming.ID))
	s.command("promote", versions.Command{Version: coming.ID, Reason: "a test"})
	s.until("promoted past the gate", func(d *versions.Document) bool { p, _ := d.Primary(); return p.ID == coming.ID })
	if doc := s.doc(); doc.Stage() != "switch" {
		t.Errorf("the old key should be held; the stage is %s", doc.Stage())
	}
	silent.uses.Store(&coming.ID)
	s.until("all have left the old key", idleWith(""))
}

func TestAStepCostsThreeRequests(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, options...)
			s.reader = s.as("other")
			consumer := &slow{}
			r, _ := s.rotator(s.client, "me", s.keys(consumer))
			ctx := t.Context()
			if err := r.Once(ctx); err != nil {
				t.Fatal(err)
			}
			most := int64(3)
			if name == "genuine" {
				most = 4
			}
			s.command("now", versions.Command{})
			set := r.sets["jwt"]
			set.commands.arrived.Store(true)
			if err := set.commands.update(ctx, time.Now()); err != nil { // the poll says that there is one
				t.Fatal(err)
			}
			for steps := 0; ; steps++ {
				before := s.doc().Step
				s.ResetCounts()
				_, err := r.beginStep(set).run(ctx)
				if err != nil {
					t.Fatal(err)
				}
				c := s.Counts()
				if n := c.Data + c.Other + c.Checks + c.WhoAmI; n > most {
					t.Errorf("step %d from %d costs %d requests: %+v", steps, before, n, c)
				}
				if doc := s.doc(); doc.Stage() == "idle" && steps > 0 {
					if steps < 3 {
						t.Errorf("idle after %d steps", steps)
					}
					return
				} else if primary, _ := doc.Primary(); true {
					coming, _ := doc.Coming()
					consumer.has.Store(&coming.ID)
					consumer.uses.Store(&primary.ID)
				}
				if steps > 20 {
					t.Fatal("it does not end")
				}
			}
		})
	}
}

func TestThousandIdleSetsCostTheirBatches(t *testing.T) { // alone, because it has so many sets
	s := newSite(t)
	const n = 1000
	policy := "- !group all\n- !grant { role: !group all, member: !host rotates }\n"
	for i := range n {
		for _, id := range []string{fmt.Sprintf("many/%d", i), fmt.Sprintf("many/%d/control", i)} {
			policy += fmt.Sprintf("- !variable %s\n- !permit { role: !group all, privileges: [read, execute, update], resource: !variable %s }\n", id, id)
		}
	}
	s.Policy(policy)
	var sets []Plan
	for i := range n {
		set := s.keys(nil)
		set.ID = fmt.Sprintf("many/%d", i)
		doc := versions.New("me").Make("20260101t000000", parts("x"), false, versions.Entry{At: time.Now()}).Promote("20260101t000000", versions.Entry{At: time.Now()})
		encoded, err := doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s.Set(set.ID, string(encoded))
		s.Set(versions.ControlOf(set.ID), noCommand)
		sets = append(sets, set)
	}
	r, _ := s.rotator(s.client, "me", sets...)
	r.config.Interval, r.config.Retry = 0, time.Millisecond
	run(t, r)
	proctest.Eventually(t, "all sets were read", func() bool {
		for _, set := range r.sets {
			if len(*set.polled.Load()) < 2 {
				return false
			}
		}
		return true
	})
	look := func() {
		r.pollSets(t.Context())
		if err := r.queue.WaitSettled(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look() // after which all are read once more
	look()
	s.ResetCounts()
	look()
	c := s.Counts()
	if c.Data != c.NotModified || c.Other != 0 || c.Data > 20 || c.Data == 0 {
		t.Errorf("a look at %d idle sets costs %+v", n, c)
	}
	t.Logf("%+v", c)
}

// TestWhatWasKnownOfASetIsSaid until the set was read.
func TestWhatWasKnownOfASetIsSaid(t *testing.T) {
	t.Parallel()
	r := New(Config{Sets: []Plan{{ID: "jwt"}, {ID: "new"}}, Reports: []Report{{Set: "jwt", Stage: "idle"}, {Set: "gone"}}})
	if reports := r.Reports(); len(reports) != 1 || reports[0].Set != "jwt" || reports[0].Stage != "idle" {
		t.Errorf("known is %+v", reports)
	}
}

// TestTheDefaultsOfARotator are those that its comments and the documentation state.
func TestTheDefaultsOfARotator(t *testing.T) {
	c := New(Config{}).config
	for name, got := range map[string][2]time.Duration{
		"Timeout": {c.Timeout, time.Minute}, "Retry": {c.Retry, time.Second}, "Watch": {c.Watch, 10 * time.Minute}, "Calm": {c.Calm, 10 * time.Second},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %s, want %s", name, got[0], got[1])
		}
	}
}
