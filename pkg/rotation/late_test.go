package rotation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// unanswered loses the answer to one write of a variable.
type unanswered struct {
	Client
	id      string
	lose    int  // which write it is, from 1 on
	arrives bool // before the error, otherwise not at all
	writes  int
}

func (c *unanswered) Set(ctx context.Context, id string, value secret.Value) error {
	if id == c.id {
		c.writes++
	}
	if id != c.id || c.writes != c.lose {
		return c.Client.Set(ctx, id, value)
	}
	if c.arrives {
		_ = c.Client.Set(ctx, id, value)
	}
	return errors.New("no answer")
}

// TestAWriteThatMayStillArriveIsWaitedFor where the server does not compare, because the
// late value would replace a newer one.
func TestAWriteThatMayStillArriveIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, conjurdtest.Strict())
	client := &unanswered{Client: s.client, id: "jwt", lose: 1}
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	r.config.Quiet = time.Hour
	r = through(client, r)
	if _, err := r.Sync(t.Context(), "jwt"); !errors.Is(err, ErrUncertain) {
		t.Fatalf("the error of the lost write is %v", err)
	}
	again, err := r.Sync(t.Context(), "jwt")
	if err != nil || again < time.Hour-time.Minute || client.writes != 1 {
		t.Errorf("there were %d writes, and the next step is in %v: %v", client.writes, again, err)
	}
}

// TestAnOldReadIsCheckedBeforeAWrite where the server does not compare.
func TestAnOldReadIsCheckedBeforeAWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t, conjurdtest.Strict())
	ctx := t.Context()
	set := Set{Conjur: s.client, ID: "jwt", server: &server{begin: time.Now()}}
	held, err := set.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	document := func(id string) *versions.Document {
		return versions.New("me").Make(id, parts(id), false, versions.Entry{At: time.Now()})
	}
	if err := set.Write(ctx, held, document("theirs")); err != nil {
		t.Fatal(err)
	}
	held.read = time.Now().Add(-fresh - time.Second)
	if err := set.Write(ctx, held, document("mine")); !errors.Is(err, ErrConflict) {
		t.Errorf("a write over what was read before theirs: %v", err)
	}
	if numbers, reading := s.client.Versions(ctx, "jwt"); reading.Err != nil || len(numbers) != 1 {
		t.Errorf("the set was written %d times: %v", len(numbers), reading.Err)
	}
}

// TestThePublishedFollowsALostWrite of the set or of the published variable, where the
// server does not write both together.
func TestThePublishedFollowsALostWrite(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*unanswered{
		"the set":      {id: "jwt", lose: 4, arrives: true}, // 2 begin the set, 1 makes a version, the next one promotes it
		"what follows": {id: "jwt-public", lose: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, conjurdtest.Strict())
			client.Client = s.client
			set := s.keys(nil)
			set.Publish = map[string]render.Published{"jwt-public": {Text: "key"}}
			r, _ := s.rotator(s.client, "me", set)
			r = through(client, r)
			if err := r.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			first := s.primary()
			s.command("now", versions.Command{})
			r.sets["jwt"].commands.arrived.Store(true)
			if err := r.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			primary, _ := s.doc().Primary()
			is := s.client.Variable(t.Context(), "jwt-public", "").Found["jwt-public"]
			if primary.ID == first || client.writes < client.lose || !is.Equal(primary.Parts["key"]) {
				t.Errorf("after %d writes the primary is %s, and it is published: %v", client.writes, primary.ID, is.Equal(primary.Parts["key"]))
			}
		})
	}
}

// TestNothingPassesAnUnmendedPublication: while the published variable has the value of an
// earlier primary, its readers use that version. No action may retire or revoke it, or
// begin another one.
func TestNothingPassesAnUnmendedPublication(t *testing.T) {
	t.Parallel()
	const right = "{ role: !host rotates, privileges: [update], resource: !variable jwt-public }\n"
	for name, options := range map[string][]conjurdtest.Option{"with compare-and-swap": nil, "without": {conjurdtest.Strict()}} {
		for _, logins := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, logins=%v", name, logins), func(t *testing.T) {
				s := newSite(t, options...)
				set, part := s.keys(nil), "key"
				if logins {
					set, part = s.logins(&outside{accepts: map[string]string{}}), "token"
				}
				set.Publish = map[string]render.Published{"jwt-public": {Text: part}}
				r, _ := s.rotator(s.client, "me", set)
				if err := r.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				first := s.primary()
				s.command("now", versions.Command{})
				r.sets["jwt"].commands.arrived.Store(true)
				s.Policy("- !deny " + right)
				step := func() { _, _ = r.beginStep(r.sets["jwt"]).run(t.Context()) }
				for range 20 { // enough for a whole rotation
					step()
				}
				if v, ok := s.doc().Version(first); !ok || v.State != versions.Primary && v.State != versions.Retiring {
					t.Errorf("the published version is %q (there: %v); the log is %v", v.State, ok, s.doc().Log)
				}
				if n := len(s.doc().Versions); n > 2 {
					t.Errorf("there are %d versions", n)
				}
				s.Policy("- !permit " + right)
				for range 20 {
					step()
				}
				if v, _ := s.doc().Version(first); v.State != versions.Retired {
					t.Errorf("the rotation goes no further; the log is %v", s.doc().Log)
				}
				primary, _ := s.doc().Primary()
				if is := s.client.Variable(t.Context(), "jwt-public", "").Found["jwt-public"]; primary.ID == first || !is.Equal(primary.Parts[part]) {
					t.Errorf("the primary is %s, and it is published: %v", primary.ID, is.Equal(primary.Parts[part]))
				}
			})
		}
	}
}

// lagging is a server without compare-and-swap whose list of versions shows a write some
// time later. It is a stand-in, because time is the subject.
type lagging struct {
	Conjur
	lag    time.Duration
	values []secret.Value
	shown  []time.Time // when the list shows each value
}

func (l *lagging) Versions(context.Context, string) (numbers []uint64, reading conjur.Reading) {
	time.Sleep(10 * time.Millisecond) // as a request does
	for i, at := range l.shown {
		if !time.Now().Before(at) {
			numbers = append(numbers, uint64(i+1))
		}
	}
	return numbers, conjur.Reading{Form: conjur.Given}
}

func (l *lagging) VariableAt(_ context.Context, _ string, version uint64) (secret.Value, conjur.Reading) {
	return secret.New(bytes.Clone(l.values[version-1].Bytes())), conjur.Reading{Form: conjur.Given}
}

func (l *lagging) SetAll(context.Context, []conjur.NewValue) error { return conjur.ErrNotOffered }

func (l *lagging) Set(_ context.Context, _ string, value secret.Value) error {
	l.values = append(l.values, secret.New(bytes.Clone(value.Bytes())))
	l.shown = append(l.shown, time.Now().Add(l.lag))
	return nil
}

// TestAListThatLagsCausesNoOtherWrite: the process waits until the list shows its write.
// It would otherwise take its own write for another's, and fill Conjur's history.
func TestAListThatLagsCausesNoOtherWrite(t *testing.T) {
	for lag, certain := range map[time.Duration]bool{0: true, 50 * time.Millisecond: true, 300 * time.Millisecond: true, 5 * time.Second: true, mostLag - time.Second: true, time.Hour: false} {
		t.Run(lag.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &lagging{}
				set := Set{Conjur: server, ID: "jwt"}
				doc := versions.New("me").Make("20260101t000000", map[string]secret.Value{"key": secret.New([]byte("k"))}, false, versions.Entry{At: time.Now()})
				if err := set.Write(t.Context(), Held{}, doc); err != nil {
					t.Fatal(err)
				}
				held, err := set.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				doc, server.lag = held.Promote("20260101t000000", versions.Entry{At: time.Now()}), lag
				begin := time.Now()
				err = set.Write(t.Context(), held, doc)
				if certain != (err == nil) || !certain && !errors.Is(err, ErrUncertain) {
					t.Errorf("the write ends with %v", err)
				}
				if len(server.values) != 2 {
					t.Errorf("%d writes", len(server.values)-1)
				}
				if took := time.Since(begin); took > mostLag+3*time.Second {
					t.Errorf("it waits for %v", took)
				}
			})
		})
	}
}
