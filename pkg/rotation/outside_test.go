package rotation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

// outside is something that mints tokens, for users that take turns.
type outside struct {
	mu      sync.Mutex
	accepts map[string]string // the version that each token is of
	refuses bool              // what is new
	inUse   []string
	minted  int
	answers string // parts of each apply: "" only what was minted, "same" what is known too, "other" new ones each time
}

func (o *outside) Prepare(_ context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	return map[string]secret.Value{"user": secret.New([]byte(fmt.Sprintf("u%d", doc.Step%2)))}, nil
}

func (o *outside) Apply(_ context.Context, v versions.Version) (map[string]secret.Value, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuses {
		return nil, fmt.Errorf("no more: %w", actuators.ErrRefused)
	}
	if token, ok := v.Parts["token"]; ok {
		o.accepts[string(token.Bytes())] = v.ID
		switch o.answers {
		case "same":
			return map[string]secret.Value{"token": secret.New([]byte(string(token.Bytes())))}, nil
		case "":
			return nil, nil
		}
	}
	o.minted++
	return map[string]secret.Value{"token": secret.New([]byte(fmt.Sprint("token", o.minted)))}, nil
}

func (o *outside) Verify(_ context.Context, v versions.Version) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if token := v.Parts["token"]; o.accepts[string(token.Bytes())] != v.ID {
		return fmt.Errorf("nobody: %w", actuators.ErrRefused)
	}
	return nil
}

func (o *outside) Revoke(_ context.Context, v versions.Version) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.Forced && len(o.accepts) == 1 {
		return errors.New("not the last one")
	}
	token := v.Parts["token"]
	delete(o.accepts, string(token.Bytes()))
	return nil
}

func (o *outside) InUse(context.Context, versions.Version) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.inUse, nil
}

func (o *outside) set(do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	do()
}

// logins is a set of what the outside mints.
func (s *site) logins(o *outside) Plan {
	set := s.keys(nil)
	set.Generate.Random, set.Actuator, set.Outside = 0, o, "the outside"
	set.Policy.GiveUp = time.Hour
	return set
}

// TestLoginsAreAcceptedBeforeAnybodyHasThem, and refused when nobody uses them.
func TestLoginsAreAcceptedBeforeAnybodyHasThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}, inUse: []string{"a session of shop"}}
	r, heard := s.rotator(s.client, "me", s.logins(o))
	run(t, r)
	first, _ := s.until("a first login", idleWith("")).Primary()
	if string(first.Parts["token"].Bytes()) != "token1" || first.Parts["user"].Len() == 0 {
		t.Errorf("its parts are %q", first.PartNames())
	}
	s.command("now", versions.Command{})
	s.until("a second login", func(d *versions.Document) bool { p, _ := d.Primary(); return p.ID != first.ID })
	proctest.Eventually(t, "who uses the first", func() bool {
		return strings.Contains(heard.reasons(), first.ID+" is used by a session of shop")
	})
	o.set(func() {
		if len(o.accepts) != 2 {
			t.Errorf("the outside accepts %d logins", len(o.accepts))
		}
		o.inUse = nil
	})
	second, _ := s.until("nobody uses the first", idleWith(first.ID)).Primary()
	o.set(func() {
		if len(o.accepts) != 1 || o.accepts["token2"] != second.ID {
			t.Errorf("the outside accepts %v", o.accepts)
		}
	})
}

// TestAServiceThatAnswersPartsEachTime is heard once with the same ones, and waited
// for when they are others.
func TestAServiceThatAnswersPartsEachTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}, answers: "same"}
	r, heard := s.rotator(s.client, "me", s.logins(o))
	run(t, r)
	first := s.until("a first login", idleWith(""))
	if o.set(func() { o.answers = "other" }); first.Step > 6 {
		t.Errorf("it took %d writes", first.Step)
	}
	s.command("now", versions.Command{})
	proctest.Eventually(t, "what is wrong", func() bool { return strings.Contains(heard.reasons(), "returned different credentials") })
	o.set(func() { o.answers = "" })
	s.until("a second login", func(d *versions.Document) bool {
		now, _ := d.Primary()
		was, _ := first.Primary()
		return now.ID != was.ID
	})
}

// TestMintedPartsWhoseWriteIsLost are nobody's: others are minted.
func TestMintedPartsWhoseWriteIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}}
	cut := false
	s.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var now bool
			o.set(func() {
				now = !cut && o.minted == 1 && r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/authn")
				cut = cut || now
			})
			if now {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	r, _ := s.rotator(s.client, "me", s.logins(o))
	run(t, r)
	primary, _ := s.until("a first login", idleWith("")).Primary()
	o.set(func() {
		if token := string(primary.Parts["token"].Bytes()); token != "token2" || !cut {
			t.Errorf("its token is %q", token)
		}
	})
}

// TestNoRotationBeginsWhereThreeFailed in a row.
func TestNoRotationBeginsWhereThreeFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}, refuses: true}
	var sets []Plan
	for i := range mostFailures + 1 {
		set := s.logins(o)
		set.ID = fmt.Sprintf("login%d", i)
		set.Schedule.Retry = time.Hour
		s.Policy(fmt.Sprintf("- !variable %[1]s\n- !variable %[1]s/control\n- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable %[1]s, !variable %[1]s/control] }\n", set.ID))
		sets = append(sets, set)
	}
	r, heard := s.rotator(s.client, "me", sets[:mostFailures]...)
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(heard.reasons(), " was refused: no more: refused "+ResultDropped); n != mostFailures {
		t.Errorf("%d sets failed:\n%s", n, heard.reasons())
	}
	last := &sets[mostFailures]
	if why := r.startLimiter.barred(last, versions.New("me"), time.Now(), false); !strings.Contains(why, "3 sets in a row failed at the outside") {
		t.Errorf("another set is barred by %q", why)
	}
	r.startLimiter.recordOutcome(last, true)
	if why := r.startLimiter.barred(last, versions.New("me"), time.Now(), false); why != "" {
		t.Errorf("after one that went well it is barred by %q", why)
	}
}

// TestTheReasonOfARefusalIsTold with what became of it.
func TestTheReasonOfARefusalIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}}
	r, heard := s.rotator(s.client, "me", s.logins(o))
	run(t, r)
	s.until("a first login", idleWith(""))
	o.set(func() { o.refuses = true })
	s.command("now", versions.Command{})
	proctest.Eventually(t, "why the second one came to nothing", func() bool {
		return strings.Contains(heard.reasons(), "was refused: no more: refused dropped")
	})
	s.until("the second one is gone", func(d *versions.Document) bool { return d.Stage() == "idle" })
	other, _ := s.rotator(s.as("rotates"), "me", s.logins(o))
	for name, reports := range map[string]func() []Report{"this process": r.Reports, "another one": func() []Report { return other.Look(t.Context()) }} {
		proctest.Eventually(t, "the status of "+name, func() bool {
			report := reports()[0]
			return strings.Contains(report.WaitsFor, report.Versions[0].ID+" was refused: no more: refused")
		})
	}
	view, err := s.doc().With([]string{"user"}).Encode()
	if err != nil || strings.Contains(string(view), "no more") {
		t.Errorf("readers of the published view see %s: %v", view, err)
	}
	o.set(func() { o.refuses = false })
	s.command("now", versions.Command{})
	s.until("a third one", idleWith(s.primary()))
	proctest.Eventually(t, "nothing of it is told any more", func() bool { return !strings.Contains(r.Reports()[0].WaitsFor, "refused") })
}
