package rotation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/faults"
	"github.com/secretsync/syncer/test/length"
	"github.com/secretsync/syncer/test/proctest"
)

var (
	seeds = length.Seeds()
	every = length.Flag("every", 5, 9, "of how many requests and faults one is tried; odd, so that each fault is") // there are four
)

func parts(text string) map[string]secret.Value {
	return map[string]secret.Value{"key": secret.New([]byte(text))}
}

// carriedOut puts the faults of all plans before a server.
func carriedOut(plans *sync.Map) conjurdtest.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, agent, _ := strings.Cut(r.UserAgent(), "engine-")
			found, _ := plans.Load(agent)
			if p, ok := found.(*faults.Plan); ok {
				p.Serve(next, w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// trial is a set, and the faults that its engines meet.
type trial struct {
	id   string
	plan *faults.Plan
}

// trials returns sets, each with a fault of another kind at another request. The set
// "calm" meets none, and counts how many requests there are.
func (s *site) trials() (all []trial) {
	plans := &sync.Map{}
	s.Intercept(carriedOut(plans))
	declare := func(all ...trial) {
		var text strings.Builder
		for _, tr := range all {
			plans.Store(tr.id+"/", tr.plan)
			fmt.Fprintf(&text, "- !variable %[1]s\n- !variable %[1]s/control\n- !variable %[1]s/public\n- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable %[1]s, !variable %[1]s/control, !variable %[1]s/public] }\n", tr.id)
		}
		s.Policy(text.String())
	}
	calm := trial{"calm", faults.None()}
	declare(calm)
	if err := s.survives(calm); err != nil {
		s.t.Fatal(err)
	}
	for seed := range seeds() {
		for at := range calm.plan.Requests() {
			for kind := range faults.Kinds {
				if (at*int(faults.Kinds)+int(kind)+seed)%every() == 0 {
					dice := rand.New(rand.NewPCG(uint64(seed), uint64(len(all))))
					all = append(all, trial{fmt.Sprintf("t%d", len(all)), &faults.Plan{At: at, Kind: kind, Dice: dice}})
				}
			}
		}
	}
	declare(all...)
	return all
}

// TestFaultsAtEachRequest kills, cuts off and leaves without an answer an engine
// at each of its requests while it begins a set and rotates it once.
func TestFaultsAtEachRequest(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, options...)
			turns := make(chan struct{}, 24)
			var all sync.WaitGroup
			for _, tr := range s.trials() {
				turns <- struct{}{}
				all.Go(func() {
					defer func() { <-turns }()
					if err := s.survives(tr); err != nil {
						t.Errorf("%v at request %d (%s): %v", tr.plan.Kind, tr.plan.At, tr.id, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// survives runs engines, each until it is killed, until a set has begun and was
// rotated once. The error says what went wrong with it.
func (s *site) survives(tr trial) error {
	id := tr.id
	deadline, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	judged := Set{Conjur: s.reader, ID: id}
	var first string
	for {
		ctx, kill := context.WithCancel(deadline)
		tr.plan.KillBy(kill)
		done := make(chan struct{})
		go func() { defer close(done); s.engine(id).Run(ctx) }()
		finished := false
		for ctx.Err() == nil && !finished {
			held, err := judged.Read(deadline)
			if err != nil {
				kill()
				<-done
				return err
			}
			if held.Document != nil {
				primary, ok := held.Primary()
				switch {
				case ok && first == "" && held.Stage() == "idle":
					first = primary.ID
					if err := judged.SendCommand(deadline, versions.Command{Verb: "now", At: time.Now()}); err != nil {
						kill()
						<-done
						return err
					}
				case first != "" && primary.ID != first && held.Stage() == "idle":
					finished = s.published(deadline, id, primary)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		kill()
		<-done
		if finished {
			return s.judge(deadline, id)
		}
		if deadline.Err() != nil {
			held, err := judged.Read(context.Background())
			return fmt.Errorf("it is stuck: %+v (%v)", newReport(id, held, err), err)
		}
	}
}

// engine is a Rotator of one set with a client of its own.
func (s *site) engine(id string) *Rotator {
	client, err := conjur.New(conjur.Config{
		ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA), RateLimit: 1e6, HTTPTimeout: 20 * time.Second,
		Authenticator: apiKey{"host/rotates", s.HostKey("rotates")}, Version: "engine-" + id + "/",
	})
	if err != nil {
		panic(err)
	}
	set := s.keys(nil)
	set.ID, set.Publish = id, map[string]render.Published{id + "/public": {Text: "key"}}
	r, _ := s.rotator(client, "me", set)
	r.config.Retry, r.config.Quiet, r.config.Interval = 5*time.Millisecond, 5*time.Millisecond, 100*time.Millisecond
	return r
}

// published reports whether the published variable follows the primary.
func (s *site) published(ctx context.Context, id string, primary versions.Version) bool {
	values := s.reader.Variable(ctx, id+"/public", "")
	return values.Found[id+"/public"].Len() > 0 && values.Found[id+"/public"].Equal(primary.Parts["key"])
}

// judge looks at all values that a set had.
func (s *site) judge(ctx context.Context, id string) error {
	numbers, reading := s.reader.Versions(ctx, id)
	var values [][]byte
	for _, n := range numbers {
		var value secret.Value
		if value, reading = s.reader.VariableAt(ctx, id, n); reading.Err != nil {
			break
		}
		values = append(values, value.Bytes())
	}
	if reading.Err != nil {
		return reading.Err
	}
	return faults.Judge(values)
}

// TestTwoEnginesOnOneSet has two engines of one owner rotate one set, where the
// server compares. Elsewhere only a Lease keeps them apart.
func TestTwoEnginesOnOneSet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 2 {
		r, _ := s.rotator(s.as("rotates"), "me", s.keys(nil))
		r.config.Retry = 5 * time.Millisecond
		run(t, r)
	}
	last := ""
	for range 4 {
		primary, _ := s.until("a rotation", idleWith(last)).Primary()
		last = primary.ID
		if err := s.judge(t.Context(), "jwt"); err != nil {
			t.Fatal(err)
		}
		s.command("now", versions.Command{})
	}
}

// TestAnotherOwnerOnlyLooks has the engine of another cluster look at a set, and
// then claim it.
func TestAnotherOwnerOnlyLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := s.rotator(s.client, "one", s.keys(nil))
	stop := run(t, r)
	first, _ := s.until("the set begins", idleWith("")).Primary()
	stop()
	other, _ := s.rotator(s.as("other"), "two", s.keys(nil))
	run(t, other)
	s.command("now", versions.Command{})
	proctest.Eventually(t, "the other says why it waits", func() bool {
		report := other.sets["jwt"].report.Load()
		return report != nil && strings.Contains(report.WaitsFor, `the set is "one"'s`)
	})
	if p, _ := s.doc().Primary(); p.ID != first.ID || s.doc().Owner != "one" {
		t.Errorf("the other engine has changed the set: %v", s.doc().Log)
	}
	if _, err := (Set{Conjur: s.reader, ID: "jwt"}).Withdraw(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	s.command("claim", versions.Command{})
	s.until("claimed", func(d *versions.Document) bool { return d.Owner == "two" && d.Step > 1_000_000 })
	s.command("now", versions.Command{})
	s.until("rotated by the other", idleWith(first.ID))
}
