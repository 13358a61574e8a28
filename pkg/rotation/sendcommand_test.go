package rotation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/proctest"
)

// TestCommandsThatAreTooLongFreezeNothing has somebody who may only write commands
// try to fill the set, and a set that was filled that way go on.
func TestCommandsThatAreTooLongFreezeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, heard := s.rotator(s.client, "me", s.keys(nil))
	stop := run(t, r)
	first, _ := s.until("the set begins", idleWith("")).Primary()
	s.Set("jwt/control", fmt.Sprintf(`{"id":%q,"at":%q,"verb":"abort"}`, strings.Repeat("x", 65<<10), time.Now().Format(time.RFC3339)))
	proctest.Eventually(t, "word of it", func() bool { return strings.Contains(heard.reasons(), "the value is not a command") })
	stop()
	held, err := Set{Conjur: s.reader, ID: "jwt"}.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held.Log = append(held.Log, versions.Entry{At: time.Now(), Command: strings.Repeat("x", 64<<10), What: "refused: abort is not possible at this stage"})
	held.Log[len(held.Log)-1].Command = held.Log[len(held.Log)-1].Command[:64<<10-len(encoded(t, &versions.Document{Step: held.Step, Owner: held.Owner, Versions: held.Versions}))-800]
	s.Set("jwt", string(encoded(t, held.Document)))
	s.Set("jwt/control", noCommand)
	again, _ := s.rotator(s.client, "me", s.keys(nil))
	run(t, again)
	s.command("now", versions.Command{})
	s.until("a second key", idleWith(first.ID))
}

func encoded(t *testing.T, d *versions.Document) []byte {
	t.Helper()
	value, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestCommandsAtOnce: each is obeyed once, or who sent it is told that it was lost.
func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, options...)
			r, _ := s.rotator(s.client, "me", s.keys(nil))
			run(t, r)
			s.until("the set begins", idleWith(""))
			var all sync.WaitGroup
			var told [6]error
			for i := range 6 {
				all.Go(func() {
					verb := []string{"pause", "resume"}[i%2]
					c := versions.Command{ID: fmt.Sprint("c", i), At: time.Now(), Verb: verb}
					what, err := Set{Conjur: s.reader, ID: "jwt"}.Command(t.Context(), c, proctest.Patience, nil)
					if told[i] = err; err == nil && what != verb+"d" {
						t.Errorf("%s: %q", verb, what)
					}
				})
			}
			all.Wait()
			count := map[string]int{}
			for _, e := range s.doc().Log {
				count[e.Command]++
			}
			for i := range 6 {
				n, err := count[fmt.Sprint("c", i)], told[i]
				// A server that does not compare may lose one. Who sent it is told.
				lost := name == "genuine" && errors.Is(err, ErrReplaced) && n == 0
				if !lost && (n != 1 || err != nil) {
					t.Errorf("c%d was obeyed %d times; who sent it was told: %v", i, n, err)
				}
			}
		})
	}
}

// TestACommandAmongManyOthersIsInConflict: Conjur keeps 20 values. Who wrote one before
// them cannot tell what holds, and leaves that to later writers.
func TestACommandAmongManyOthersIsInConflict(t *testing.T) {
	t.Parallel()
	s := newSite(t, servers["genuine"]...)
	s.Set("jwt/control", noCommand)
	set := Set{Conjur: s.reader, ID: "jwt"}
	over, err := set.readControl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mine := control{Command: versions.Command{ID: "mine", At: time.Now(), Verb: "pause"}}
	s.Set("jwt/control", string(mine.value().Bytes()))
	for i := range 21 {
		s.Set("jwt/control", string(control{Command: versions.Command{ID: fmt.Sprint("c", i), At: time.Now(), Verb: "pause"}}.value().Bytes()))
	}
	if err := set.settleControl(t.Context(), over, mine); !errors.Is(err, ErrConflict) {
		t.Errorf("the command that 21 others followed: %v", err)
	}
}

// TestOneOfTheCommandsAtOneMomentIsSent, the others fail, and it is the one that
// stays.
func TestOneOfTheCommandsAtOneMomentIsSent(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, options...)
			for round := range 5 {
				s.Set("jwt/control", noCommand)
				const n = 4
				var errs [n]error
				var all, begin sync.WaitGroup
				begin.Add(n)
				for i := range n {
					all.Go(func() {
						set := Set{Conjur: &together{s.reader, &begin}, ID: "jwt"}
						errs[i] = set.SendCommand(t.Context(), versions.Command{ID: fmt.Sprint("c", i), At: time.Now(), Verb: "now"})
					})
				}
				all.Wait()
				there, err := Set{Conjur: s.reader, ID: "jwt"}.readControl(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i, err := range errs {
					if sent := there.ID == fmt.Sprint("c", i); sent != (err == nil) || err != nil && !errors.Is(err, ErrPending) {
						t.Errorf("round %d: c%d is there: %v; its sender was told %v", round, i, sent, err)
					}
				}
			}
		})
	}
}

// answering answers a command as soon as it is written, before its sender looks.
type answering struct{ Conjur }

func (c answering) Set(ctx context.Context, id string, value secret.Value) error {
	sent, err := parseControl(value.Bytes())
	if err == nil {
		err = c.Conjur.Set(ctx, id, value)
	}
	if sent.Answer = "done"; err == nil {
		err = c.Conjur.Set(ctx, id, sent.value())
	}
	return err
}

// TestACommandThatIsAnsweredAtOnceWasSent though its sender never sees it pending.
func TestACommandThatIsAnsweredAtOnceWasSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, conjurdtest.Strict())
	s.Set("jwt/control", noCommand)
	set := Set{Conjur: answering{s.reader}, ID: "jwt"}
	if err := set.SendCommand(t.Context(), versions.Command{At: time.Now(), Verb: "now"}); err != nil {
		t.Error(err)
	}
	if what, err := set.Command(t.Context(), versions.Command{At: time.Now(), Verb: "now"}, time.Minute, nil); err != nil || what != "done" {
		t.Errorf("%q, %v", what, err)
	}
}

// TestWhoSentACommandIsToldThatItWasWithdrawn for one that was sent instead.
func TestWhoSentACommandIsToldThatItWasWithdrawn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Set("jwt/control", noCommand)
	set := Set{Conjur: s.reader, ID: "jwt"}
	done := make(chan error)
	go func() {
		_, err := set.Command(t.Context(), versions.Command{At: time.Now(), Verb: "now"}, time.Minute, nil)
		done <- err
	}()
	var withdrawn string
	proctest.Eventually(t, "the first command", func() bool {
		var err error
		if withdrawn, err = set.Withdraw(t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
		return withdrawn == "now"
	})
	if err := set.SendCommand(t.Context(), versions.Command{At: time.Now(), Verb: "pause"}); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("its sender was told %v", err)
	}
}

// TestWhatHoldsInAControlVariable is decided by the order of what was written.
func TestWhatHoldsInAControlVariable(t *testing.T) {
	t.Parallel()
	now := time.Now()
	command := func(id, answer string) control {
		return control{Command: versions.Command{ID: id, At: now, Verb: "now"}, Answer: answer}
	}
	old := command("old", "")
	old.At = now.Add(-2 * time.Hour)
	for name, c := range map[string]struct {
		was, next control
		holds     string
	}{
		"the first":          {control{}, command("a", ""), "a "},
		"while pending":      {command("a", ""), command("b", ""), "a "},
		"its answer":         {command("a", ""), command("a", "done"), "a done"},
		"sent again":         {command("a", "done"), command("a", ""), "a done"},
		"after its answer":   {command("a", "done"), command("b", ""), "b "},
		"a void one":         {old, command("b", ""), "b "},
		"a first value late": {command("a", ""), control{}, "a "},
		"emptied":            {command("a", "done"), control{}, " "},
		"an answer too late": {command("a", ""), command("b", "done"), "a "},
	} {
		if is := c.was.then(c.next); is.ID+" "+is.Answer != c.holds {
			t.Errorf("%s: %q holds", name, is.ID+" "+is.Answer)
		}
	}
}

// TestACommandThatNobodyAnswers is never taken for one that was obeyed, however short the
// wait is.
func TestACommandThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	what, err := Set{Conjur: s.reader, ID: "jwt"}.Command(t.Context(), versions.Command{Verb: "now", At: time.Now()}, time.Nanosecond, nil)
	if what != "" || !errors.Is(err, ErrUnanswered) {
		t.Errorf("after a moment: %q, %v", what, err)
	}
}

// TestACommandSaysWhyItWaits while it waits, and the next command says it too.
func TestACommandSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, options...)
			r, _ := s.rotator(s.client, "me", s.keys(nil))
			config := r.config
			config.PerHour = 1
			run(t, New(config))
			first, _ := s.until("a first key", idleWith("")).Primary()
			s.command("now", versions.Command{})
			s.until("the only other key of this hour", idleWith(first.ID))
			set := Set{Conjur: s.reader, ID: "jwt"}
			ctx, cancel := context.WithCancel(t.Context())
			told := ""
			_, err := set.Command(ctx, versions.Command{Verb: "now", At: time.Now()}, time.Minute, func(why string) { told = why; cancel() })
			if !strings.Contains(told, "rotation.perHour is 1") {
				t.Errorf("while it waits, the sender is told %q", told)
			}
			if !errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), "because the set waits") {
				t.Errorf("at the end, the sender is told: %v", err)
			}
			if err := set.SendCommand(t.Context(), versions.Command{Verb: "pause", At: time.Now()}); !errors.Is(err, ErrPending) || !strings.Contains(err.Error(), "now, which waits: "+told) {
				t.Errorf("the next sender is told: %v", err)
			}
		})
	}
}

// TestACommandGetsFewReasons, because Conjur keeps few values of a variable.
func TestACommandGetsFewReasons(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	commands := &r.sets["jwt"].commands
	s.Set("jwt/control", noCommand)
	set := Set{Conjur: s.reader, ID: "jwt"}
	if err := set.SendCommand(t.Context(), versions.Command{Verb: "now", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	sent, err := set.readControl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commands.last = sent
	for i := range 3 * mostWaits {
		commands.explain(t.Context(), fmt.Sprint(strings.Repeat("<", 2*maxWaits), i%2, i))
		commands.explain(t.Context(), strings.Repeat("a", i))
	}
	is, err := set.readControl(t.Context())
	if err != nil || is.at != sent.at+mostWaits || is.ID != sent.ID {
		t.Errorf("the command is %+v after %+v: %v", is, sent, err)
	}
}
