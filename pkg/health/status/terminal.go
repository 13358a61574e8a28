package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/internal/terminal"
)

// Overview prints the Status of a running process.
type Overview struct {
	URL       string
	TokenFile string // "": none
	// All also lists the targets that are fresh.
	All    bool
	Output output.Format
	Out    io.Writer
}

// Once prints the Status once. The error is its Verdict.
func (o Overview) Once(ctx context.Context) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	s, err := client.Get(ctx)
	if err != nil {
		return err
	}
	if err := o.print(terminal.New(o.Out), s); err != nil {
		return err
	}
	return s.Verdict()
}

// Watch prints the Status now and after each change, on a terminal in place, until ctx
// ends or the process is gone. If ctx ends, the error is that of Once for the last
// printed Status.
func (o Overview) Watch(ctx context.Context) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	screen := terminal.New(o.Out)
	var failed error
	var before []string
	verdict := errors.New("interrupted before the process has answered")
	err = client.Follow(ctx, func(s Status) {
		verdict = s.Verdict()
		if !screen.Live() { // on a log, a later time alone is not a change
			now := o.lines(screen, untimed(s))
			if slices.Equal(now, before) {
				return
			}
			before = now
		}
		switch {
		case failed != nil:
		case o.Output == output.JSON && !screen.Live(): // a line for each Status
			failed = json.NewEncoder(o.Out).Encode(s)
		default:
			failed = o.print(screen, s)
		}
	})
	if ctx.Err() != nil {
		return cmp.Or(failed, verdict)
	}
	return errors.Join(failed, err)
}

// untimed returns a Status without the times that always change.
func untimed(s Status) Status {
	s.Targets = slices.Clone(s.Targets)
	for i := range s.Targets {
		s.Targets[i].Proven, s.Targets[i].Changed = time.Time{}, time.Time{}
	}
	return s
}

func (o Overview) client() (Client, error) {
	if o.TokenFile == "" {
		return Client{URL: o.URL}, nil
	}
	text, err := safefile.ReadInput(o.TokenFile, maxToken)
	token := strings.TrimSpace(string(text))
	if err == nil && strings.ContainsFunc(token, unicode.IsControl) {
		err = fmt.Errorf("%s: a token is one line of text", o.TokenFile)
	}
	return Client{URL: o.URL, Token: token}, err
}

func (o Overview) print(screen *terminal.Screen, s Status) error {
	switch {
	case o.Output == output.YAML:
		if _, err := io.WriteString(o.Out, "---\n"); err != nil {
			return err
		}
		fallthrough
	case o.Output == output.JSON:
		return o.Output.Write(o.Out, s)
	}
	return screen.Draw(o.lines(screen, s))
}

// badness orders states, the worst first.
var badness = []State{Failing, Revoked, Doubted, Stale, Limited, Waiting, Fresh}

// colors are those of the states.
var colors = map[State]terminal.Color{
	Failing: terminal.Red, Revoked: terminal.Magenta, Doubted: terminal.Yellow, Stale: terminal.Yellow, Limited: terminal.Yellow, Waiting: terminal.Blue, Fresh: terminal.Green,
}

func (o Overview) lines(screen *terminal.Screen, s Status) []string {
	if s.Standby != "" {
		return []string{"Standing by: " + terminal.Plain(s.Standby) + " works"}
	}
	fresh := 0
	rows := []terminal.Row{{Cells: []string{"STATE", "TARGET", "IDENTITY", "PROVEN", "CHANGED", "EXPIRES", "WHAT IS WRONG, AND WHAT IT WAITS FOR"}}}
	ts := slices.Clone(s.Targets)
	slices.SortStableFunc(ts, func(a, b Target) int {
		return cmp.Compare(slices.Index(badness, a.State), slices.Index(badness, b.State))
	})
	for _, t := range ts {
		if t.State == Fresh {
			fresh++
			if !o.All {
				continue
			}
		}
		rows = append(rows, terminal.Row{Color: colors[t.State], Cells: []string{
			string(t.State), t.Name, t.Lane, ago(s.At, t.Proven), ago(s.At, t.Changed), ahead(s.At, t.Expires), wrong(t),
		}})
	}
	if !slices.ContainsFunc(ts, func(t Target) bool { return !t.Expires.IsZero() }) {
		for i := range rows {
			rows[i].Cells = slices.Delete(rows[i].Cells, 5, 6) // no certificates
		}
	}
	noun := "targets"
	if len(ts) == 1 {
		noun = "target"
	}
	lines := []string{fmt.Sprintf("%d %s, %d fresh", len(ts), noun, fresh)}
	if s.Restart != "" {
		lines = append(lines, terminal.Plain(s.Restart))
	}
	for _, l := range s.Lanes {
		if h := l.Held; h.Of > 0 {
			lines = append(lines, terminal.Plain(fmt.Sprintf("Removal as %s is held back until %s: %d of %d variables are gone at once", l.Name, h.Until.Format(time.TimeOnly), h.Gone, h.Of)))
		}
	}
	if len(rows) > 1 {
		lines = append(lines, screen.Table(rows)...)
	}
	return append(lines, screen.Table(rotations(s))...)
}

// rotations returns the rows of the rotated sets.
func rotations(s Status) (rows []terminal.Row) {
	if len(s.Rotations) > 0 {
		rows = []terminal.Row{{Cells: []string{"SET", "STAGE", "FOR", "PRIMARY", "WAITS FOR"}}}
	}
	for _, r := range s.Rotations {
		rows = append(rows, terminal.Row{Cells: []string{r.Set, r.Stage, ago(s.At, r.Since), r.Primary, left(r)}})
	}
	return rows
}

// left describes what a set waits for, and which Pods use it without being asked.
func left(r Rotation) string {
	text := cmp.Or(r.Problem, r.Waits)
	if r.Unasked != "" {
		text = strings.TrimPrefix(text+"; not asked: "+r.Unasked, "; ")
	}
	if r.Unread != "" {
		text = strings.TrimPrefix(text+"; not followed: "+r.Unread, "; ")
	}
	return text
}

// wrong returns the error of a target, or the reason why it waits.
func wrong(t Target) string {
	text := cmp.Or(t.Error, t.Limits)
	if t.Waits != "" {
		text = strings.TrimPrefix(text+"; waits for "+t.Waits, "; ")
	}
	if !t.Next.IsZero() {
		text += " at " + t.Next.Format(time.TimeOnly)
	}
	return text
}

// ago returns the time that has passed since t.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return span(max(now.Sub(then), 0))
}

// ahead returns the time until t.
func ahead(now, then time.Time) string {
	switch {
	case then.IsZero():
		return "-"
	case !then.After(now):
		return "expired"
	}
	return "in " + span(then.Sub(now))
}

func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}
