package rotation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

func TestMain(m *testing.M) {
	proctest.AtOnce(8)
	goleak.VerifyTestMain(m)
}

const policy = `
- !variable jwt
- !variable readonly
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resource: !variable jwt }
- !permit { role: !host rotates, privileges: [read, execute], resource: !variable readonly }
`

// servers are the embedded one, and the same with only what the genuine one has.
var servers = map[string][]conjurdtest.Option{"compares": nil, "genuine": {conjurdtest.Strict()}}

type apiKey struct{ login, key string }

func (a apiKey) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	return conjur.Credential{Login: a.login, ContentType: "text/plain", Body: secret.New([]byte(a.key))}, nil
}

func manual(t *testing.T, server *conjurdtest.Server) Manual {
	t.Helper()
	client, err := conjur.New(conjur.Config{
		ApplianceURL: server.URL, Account: server.Account, CA: string(server.CA), RateLimit: 1e6,
		Authenticator: apiKey{"host/rotates", server.HostKey("rotates")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return Manual{Set: Set{Conjur: client, ID: "jwt"}, Now: time.Now}
}

// asked are consumers by their names, each with the ids that it has, the primary
// first.
type asked map[string][]string

func (a asked) Introduced(_ context.Context, _ *versions.Document, v versions.Version, _ []Shown) Answer {
	return a.all("does not have "+v.ID, func(ids []string) bool { return slices.Contains(ids, v.ID) })
}

func (a asked) Left(_ context.Context, doc *versions.Document, _ versions.Version, _ []Shown) Answer {
	primary, _ := doc.Primary()
	return a.all("does not use "+primary.ID, func(ids []string) bool { return ids[0] == primary.ID })
}

func (a asked) all(lacks string, has func([]string) bool) Answer {
	for name, ids := range a {
		if !has(ids) {
			return Answer{Waits: name + " " + lacks}
		}
	}
	return Answer{Open: true}
}

func wants(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %v; it should say %q", err, says)
	}
}

func TestARotationByHand(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			server := conjurdtest.Start(t, options...)
			server.Policy(policy)
			h := manual(t, server)
			ctx := t.Context()
			config := generate.Config{Random: 32}
			first, err := h.Init(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Init(ctx, config); true {
				wants(t, err, "has begun already")
			}
			_, err = h.Add(ctx, generate.Config{Ed25519: true})
			wants(t, err, `the new version would have ["private" "public"]`)
			second, err := h.Add(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.Add(ctx, config)
			wants(t, err, second+" is pending already")
			begun, err := h.Read(ctx)
			if err != nil || begun.Identity == "" {
				t.Errorf("the set has the identity %q: %v", begun.Identity, err)
			}

			consumers := asked{"quick": {first, second}, "slow": {first}}
			gate := Gate{Consumers: consumers}
			_, err = h.Promote(ctx, gate)
			wants(t, err, "slow does not have "+second)
			consumers["slow"] = consumers["quick"]
			defer func() {
				if held, err := h.Read(ctx); err != nil || held.Identity != begun.Identity {
					t.Errorf("its identity became %q: %v", held.Identity, err)
				}
			}()
			if id, err := h.Promote(ctx, gate); err != nil || id != second {
				t.Fatalf("%s is promoted: %v", id, err)
			}

			wants(t, h.Retire(ctx, second, gate), "is the primary")
			wants(t, h.Retire(ctx, "r9", gate), "has no version r9")
			consumers["quick"] = []string{second, first}
			wants(t, h.Retire(ctx, first, gate), "slow does not use "+second)
			consumers["slow"] = consumers["quick"]
			wants(t, h.Retire(ctx, first, Gate{Consumers: consumers, Keep: time.Hour}), "have passed of 1h0m0s")
			if err := h.Retire(ctx, first, gate); err != nil {
				t.Fatal(err)
			}
			wants(t, h.Retire(ctx, first, gate), "is retired already")
			held, err := h.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			gone, _ := held.Version(first)
			if primary, _ := held.Primary(); primary.ID != second || gone.Parts != nil || held.Step != 5 {
				t.Errorf("at step %d, %s is the primary, and %s has the parts %v", held.Step, primary.ID, first, gone.PartNames())
			}
		})
	}
}

func TestForceNeedsAReasonAndKeepsIt(t *testing.T) {
	t.Parallel()
	server := conjurdtest.Start(t)
	server.Policy(policy)
	h := manual(t, server)
	if _, err := h.Init(t.Context(), generate.Config{UUID: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Add(t.Context(), generate.Config{UUID: true}); err != nil {
		t.Fatal(err)
	}
	gate := Gate{Consumers: asked{"slow": {"none"}}, Force: true}
	_, err := h.Promote(t.Context(), gate)
	wants(t, err, "--force needs a --reason")
	gate.Reason = "the key was seen in a log"
	if _, err := h.Promote(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	held, err := h.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if last := held.Log[len(held.Log)-1]; last.Reason != gate.Reason {
		t.Errorf("the log says %+v", last)
	}
}

func TestTwoHandsAtOnce(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			server := conjurdtest.Start(t, options...)
			server.Policy(policy)
			h := manual(t, server)
			if _, err := h.Init(t.Context(), generate.Config{UUID: true}); err != nil {
				t.Fatal(err)
			}
			seen, err := h.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Add(t.Context(), generate.Config{UUID: true}); err != nil {
				t.Fatal(err)
			}
			late := seen.Make("r1", map[string]secret.Value{"uuid": secret.New([]byte("late"))}, false, versions.Entry{})
			if err := h.Write(t.Context(), seen, late); !errors.Is(err, ErrConflict) {
				t.Errorf("a write over what was not read: %v", err)
			}
			held, err := h.Read(t.Context())
			if _, is := held.Version("r1"); err != nil || is {
				t.Errorf("the late write was taken: %v", err)
			}
		})
	}
}

// between lets another hand write between the look and the write.
type between struct {
	Conjur
	write func()
}

func (b *between) Set(ctx context.Context, id string, value secret.Value) error {
	if write := b.write; write != nil {
		b.write = nil
		write()
	}
	return b.Conjur.Set(ctx, id, value)
}

func TestTwoHandsAtTheSameMomentWithoutComparison(t *testing.T) {
	t.Parallel()
	server := conjurdtest.Start(t, conjurdtest.Strict())
	server.Policy(policy)
	h := manual(t, server)
	if _, err := h.Init(t.Context(), generate.Config{UUID: true}); err != nil {
		t.Fatal(err)
	}
	other := h
	var theirs string
	h.Conjur = &between{h.Conjur, func() {
		var err error
		if theirs, err = other.Add(t.Context(), generate.Config{UUID: true}); err != nil {
			t.Error(err)
		}
	}}
	h.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if _, err := h.Add(t.Context(), generate.Config{UUID: true}); !errors.Is(err, ErrConflict) {
		t.Errorf("the conflict is %v", err)
	}
	held, err := other.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := held.Version(theirs); v.State != versions.Accepted || held.Live() != 3 || held.Versions[0].State != versions.Retiring {
		t.Errorf("the version that came first is %s; of %d that are live the newest is %s", v.State, held.Live(), held.Versions[0].State)
	}
}

func TestWhatIsNotASetIsLeftAlone(t *testing.T) {
	t.Parallel()
	const canary = "canary-value"
	server := conjurdtest.Start(t)
	server.Policy(policy)
	h := manual(t, server)
	server.Set("jwt", canary)
	_, err := h.Init(t.Context(), generate.Config{UUID: true})
	wants(t, err, "a set begins in a variable without a value")
	_, err = h.Add(t.Context(), generate.Config{UUID: true})
	wants(t, err, "the value is not a set")
	report := fmt.Sprint(err, h.Status(t.Context()), h.Check(t.Context(), Gate{}))
	if strings.Contains(report, canary) || !strings.Contains(report, "not JSON") {
		t.Errorf("it says: %s", report)
	}
}

// TestInitPrintsTheCommandThatDeclaresTheSet, on one line, as errors are printed.
func TestInitPrintsTheCommandThatDeclaresTheSet(t *testing.T) {
	t.Parallel()
	server := conjurdtest.Start(t)
	server.Policy(policy)
	h := manual(t, server)
	h.ID = "apps/shop/new"
	_, err := h.Init(t.Context(), generate.Config{UUID: true})
	wants(t, err, "' | syncer policy load root -")
	_, text, _ := strings.Cut(err.Error(), "echo '")
	text, _, _ = strings.Cut(text, "'")
	if strings.Contains(text, "\n") {
		t.Fatalf("the policy has several lines: %q", text)
	}
	server.Policy(strings.ReplaceAll(text, "ROTATES", "rotates"))
	if _, err := h.Init(t.Context(), generate.Config{UUID: true}); err != nil {
		t.Errorf("after the policy was loaded: %v", err)
	}
}

func TestCheckSaysAllThatIsMissing(t *testing.T) {
	t.Parallel()
	server := conjurdtest.Start(t)
	server.Policy(policy)
	h := manual(t, server)
	h.ID = "undeclared"
	if got := h.Check(t.Context(), Gate{}); len(got) != 1 || !strings.Contains(got[0], "not declared") {
		t.Errorf("of what is not declared it says %q", got)
	}
	_, err := h.Init(t.Context(), generate.Config{UUID: true})
	wants(t, err, "!variable undeclared")
	h.ID = "readonly"
	got := strings.Join(h.Check(t.Context(), Gate{}), "\n")
	for _, says := range []string{`lacks "update"`, "has not begun"} {
		if !strings.Contains(got, says) {
			t.Errorf("%q is not in: %s", says, got)
		}
	}
	h.ID = "jwt"
	if _, err := h.Init(t.Context(), generate.Config{UUID: true}); err != nil {
		t.Fatal(err)
	}
	if got := h.Check(t.Context(), Gate{Consumers: asked{"slow": {"another"}}}); len(got) != 1 || !strings.Contains(got[0], "slow") {
		t.Errorf("of a consumer that lags it says %q", got)
	}
}

// TestAPromotionAndARetirementAtOnce of the same version: one holds, and whoever
// lost is told so.
func TestAPromotionAndARetirementAtOnce(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			server := conjurdtest.Start(t, options...)
			server.Policy(policy)
			h := manual(t, server)
			ctx := t.Context()
			if _, err := h.Init(ctx, generate.Config{UUID: true}); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				id, err := h.Add(ctx, generate.Config{UUID: true})
				if err != nil {
					t.Fatal(err)
				}
				one, two := manual(t, server), manual(t, server)
				// Both have read the set and looked before either of them writes.
				var both sync.WaitGroup
				both.Add(2)
				one.Conjur, two.Conjur = &together{one.Conjur, &both}, &together{two.Conjur, &both}
				var promoted, retired error
				var done sync.WaitGroup
				done.Go(func() { _, promoted = one.Promote(ctx, Gate{}) })
				done.Go(func() { retired = two.Retire(ctx, id, Gate{}) })
				done.Wait()
				held, err := h.Read(ctx)
				if err != nil {
					t.Fatal(err)
				}
				v, _ := held.Version(id)
				if (promoted == nil) == (retired == nil) {
					t.Errorf("promoted: %v; retired: %v", promoted, retired)
				}
				if (promoted == nil) != (v.State == versions.Primary) || (retired == nil) != (v.State == versions.Retired) {
					t.Errorf("%s is %s; promoted: %v; retired: %v", id, v.State, promoted, retired)
				}
				if lost := errors.Join(promoted, retired); !errors.Is(lost, ErrConflict) {
					t.Errorf("the error is %v", lost)
				}
			}
		})
	}
}

// together has several writes of a set begin at one moment.
type together struct {
	Conjur
	all *sync.WaitGroup
}

func (c *together) wait() {
	if all := c.all; all != nil {
		c.all = nil
		all.Done()
		all.Wait()
	}
}

func (c *together) Set(ctx context.Context, id string, value secret.Value) error {
	c.wait()
	return c.Conjur.Set(ctx, id, value)
}

func (c *together) SetAll(ctx context.Context, values []conjur.NewValue) error {
	err := c.Conjur.SetAll(ctx, nil)
	if errors.Is(err, conjur.ErrNotOffered) {
		return err // then Set comes
	}
	c.wait()
	return c.Conjur.SetAll(ctx, values)
}
