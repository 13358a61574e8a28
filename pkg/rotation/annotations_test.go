package rotation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// annotate declares a variable as for a rotator of Conjur's own.
func (s *site) annotate(id, rotator, ttl, length string) {
	s.t.Helper()
	s.Policy(fmt.Sprintf(`
- !variable { id: %s, annotations: { description: a password, rotation/rotator: %s, rotation/ttl: %q, rotation/postgresql/password/length: %q } }
- !variable user
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable %[1]s, !variable user] }
`, id, rotator, ttl, length))
}

// passwords is a set of passwords, which follow in a variable.
func (s *site) passwords(id string) Plan {
	set := s.keys(nil)
	set.Generate = generate.Config{Password: &generate.Password{}}
	set.Schedule.General, set.Schedule.Every = true, 30*24*time.Hour
	set.Publish = map[string]render.Published{id: {Text: "password"}}
	return set
}

// TestAPolicySaysHowOftenAndHowLong where the set does not: as annotations of the
// variable that it publishes to.
func TestAPolicySaysHowOftenAndHowLong(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		off    bool
		adjust func(*Plan)
		every  time.Duration
		length int
	}{
		"off":                   {off: true, every: 30 * day, length: 32},
		"on":                    {every: day, length: 20},
		"a schedule of its own": {adjust: func(set *Plan) { set.Schedule.General = false }, every: 30 * day, length: 20},
		"a length of its own":   {adjust: func(set *Plan) { set.Generate.Password.Length = 40 }, every: day, length: 40},
		"no password of Syncer's": {adjust: func(set *Plan) {
			set.Generate, set.Publish["shop"] = generate.Config{Random: 16}, render.Published{Text: "key"}
		}, every: day, length: 16},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, conjurdtest.Strict())
			s.annotate("shop", "postgresql/password", "P1D", "20")
			set := s.passwords("shop")
			if c.adjust != nil {
				c.adjust(&set)
			}
			r, _ := s.rotator(s.client, "me", set)
			r.config.FromPolicy = !c.off
			if err := r.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			value := s.client.Variable(t.Context(), "shop", "").Found["shop"]
			report := r.Look(t.Context())[0]
			if every := report.Due.Sub(report.Made); value.Len() != c.length || every > c.every || every < c.every*9/10 {
				t.Errorf("a password of %d is due after %v", value.Len(), every)
			}
			if problems := r.Check(t.Context()); len(problems) > 0 {
				t.Errorf("the check says %q", problems)
			}
			if reminders := r.Reminders(t.Context())["jwt"]; len(reminders) != 1 || !strings.Contains(reminders[0], `own rotator, if it is enabled: the policy annotates "shop"`) {
				t.Errorf("the reminders are %q", reminders)
			}
		})
	}
}

// TestAnAnnotationThatIsWrongBeginsNothing, and is named until the policy is mended.
func TestAnAnnotationThatIsWrongBeginsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.annotate("shop", "postgresql/password", "P1D", "20")
	r, heard := s.rotator(s.client, "me", s.passwords("shop"))
	r.config.FromPolicy = true
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := s.doc()
	set := r.sets["jwt"]
	again := func(rotator, ttl, length string) { // as ten minutes later
		t.Helper()
		s.annotate("shop", rotator, ttl, length)
		set.annotated = time.Now().Add(-annotatedFor)
		if _, err := set.stored.Withdraw(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		s.command("now", versions.Command{})
		set.commands.arrived.Store(true)
		if err := r.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ rotator, ttl, length, want string }{
		{"postgresql/password", "soon", "20", `"shop": rotation/ttl is "soon"; write`},
		{"postgresql/password", "P1D", "many", `"shop": rotation/postgresql/password/length is "many"; write`},
		{"postgresql/password", "P0D", "8", `"shop": rotation/ttl is "P0D"; write`},
		{"postgresql/password", "P0D", "8", `"shop": rotation/postgresql/password/length is "8"; write`},
		{"aws/secret_key", "P1D", "20", `"shop": rotation/rotator is "aws/secret_key", which Syncer does not know`},
	} {
		again(c.rotator, c.ttl, c.length)
		if now := s.doc(); now.Step != first.Step {
			t.Fatalf("with %v the set goes on: %v", c, now.Log)
		}
		if check := strings.Join(r.Check(t.Context())["jwt"], "\n"); !strings.Contains(check, c.want) || !strings.Contains(heard.reasons(), c.want) {
			t.Errorf("the check says %s, and the Events are %s", check, heard.reasons())
		}
		if report := r.Look(t.Context())[0]; !strings.Contains(report.WaitsFor, c.want) {
			t.Errorf("the set waits for %s", report.WaitsFor)
		}
	}
	again("postgresql/password", "P1D", "24")
	value := s.client.Variable(t.Context(), "shop", "").Found["shop"]
	if value.Len() != 24 {
		t.Errorf("the next password has %d characters", value.Len())
	}
}

// TestWhatAPolicyWantsRotatedAndNoSetIs is named with what to add.
func TestWhatAPolicyWantsRotatedAndNoSetIs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.annotate("shop/password", "postgresql/password", "P1D", "20")
	s.annotate("cloud", "aws/secret_key", "P1D", "20")
	r, _ := s.rotator(s.client, "me")
	if found := r.Check(t.Context()); len(found) > 0 {
		t.Errorf("though it is off, the check says %q", found)
	}
	r.config.FromPolicy = true
	found := r.Check(t.Context())
	for id, want := range map[string]string{
		"shop/password": "add to rotation.sets {set: shop/password-set, postgresql: {address: HOST:PORT/DATABASE, admin: shop/admin, users: [USER_A, USER_B]}, publish: {shop/password: password, shop/username: username}}",
		"cloud":         `rotation/rotator is "aws/secret_key", which Syncer does not know`,
	} {
		if len(found) != 2 || len(found[id]) != 1 || !strings.Contains(found[id][0], want) {
			t.Errorf("of %s the check says %q", id, found)
		}
	}
}

// TestParseAnnotations reads what the genuine server would go by.
func TestParseAnnotations(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for ttl, want := range map[string]time.Duration{
		"P1D": day, "PT1S": time.Second, "P2W": 14 * day, "P1Y2M3DT4H5M6S": 428*day + 4*time.Hour + 5*time.Minute + 6*time.Second, "PT0H30M": 30 * time.Minute,
		"": 0, "P": 0, "PT": 0, "P0D": 0, "1d": 0, "P1.5D": 0, "P-1D": 0, "PT1D": 0, "P1H": 0, "P100Y": 36500 * day, "P99Y365D": 36500 * day, "P100YT1S": 0, "P36500D": 36500 * day, "P36501D": 0, "P101Y": 0, "P99999999999999999999D": 0, "P100Y1D": 0, "P100Y1200M5000W": 0, " P1D": 0, "P1D\n": 0,
	} {
		w, problems := parseAnnotations(conjur.Resource{Annotations: map[string]string{conjur.RotatorAnnotation: postgresqlRotator, ttlAnnotation: ttl}})
		if bad := want == 0; !bad && w.every != want || bad != (len(problems) == 1) {
			t.Errorf("%q is %v, %q", ttl, w.every, problems)
		}
	}
	for length, want := range map[string]int{"16": 16, "256": 256, "15": 0, "257": 0, "0": 0, "-20": 0, "20.0": 0, "": 0} {
		w, problems := parseAnnotations(conjur.Resource{Annotations: map[string]string{conjur.RotatorAnnotation: postgresqlRotator, lengthAnnotation: length}})
		if bad := want == 0; !bad && w.length != want || bad != (len(problems) == 1) {
			t.Errorf("%q is %v, %q", length, w.length, problems)
		}
	}
	if w, problems := parseAnnotations(conjur.Resource{Annotations: map[string]string{ttlAnnotation: "x", lengthAnnotation: "y"}, Expires: true}); w != (wanted{}) || problems != nil {
		t.Errorf("without a rotator they ask for %v, %q", w, problems)
	}
	if _, problems := parseAnnotations(conjur.Resource{Annotations: map[string]string{conjur.RotatorAnnotation: postgresqlRotator}, Expires: true}); len(problems) != 1 {
		t.Errorf("where the server's own rotator is at work it says %q", problems)
	}
	short, long := wanted{every: time.Hour, length: 20}, wanted{every: day, length: 30}
	for _, w := range []wanted{short.and(long), long.and(short), short.and(long).and(wanted{}), wanted{}.and(short).and(long)} {
		if w != (wanted{every: time.Hour, length: 30}) {
			t.Errorf("together they ask for %v", w)
		}
	}
}

// TestAnnotationsThatCannotBeReadAreNotNone: a failure is not a policy without them.
func TestAnnotationsThatCannotBeReadAreNotNone(t *testing.T) {
	if _, _, err := readWanted(t.Context(), unreadable{}, []string{"shop"}); err == nil || !strings.Contains(err.Error(), `the annotations of "shop": no answer`) {
		t.Errorf("the error is %v", err)
	}
}

// unreadable is a server that does not answer.
type unreadable struct{ Client }

func (unreadable) Resource(context.Context, *conjur.Token, string) (conjur.Resource, conjur.Reading) {
	return conjur.Resource{}, conjur.Reading{Err: errors.New("no answer")}
}
