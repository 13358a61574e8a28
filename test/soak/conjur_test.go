//go:build long

package soak

import (
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/world"
)

// conjur is a server that records all values, and the folders of a process beside it.
type conjur struct {
	*world.Pod
	random *mathrand.Rand

	mu    sync.Mutex
	value map[string]string          // of each variable
	ever  map[string]map[string]bool // the values that it has had
	away  map[string]bool            // revoked variables
	edits int                        // of the templates
}

// newConjur starts a server with short-lived tokens, so that many expire. The garbage
// collector of the processes runs whenever the heap has grown by a tenth. The heap then
// follows the live objects, so that a small leak is seen early.
func newConjur(t testing.TB, random *mathrand.Rand) *conjur {
	t.Helper()
	c := &conjur{
		Pod: world.NewPod(t, conjurdtest.TokenTTL(3*time.Second)), random: random,
		value: map[string]string{}, ever: map[string]map[string]bool{}, away: map[string]bool{},
	}
	maps.Copy(c.Env, map[string]string{"CONJUR_HTTP_TIMEOUT": "2", "GOGC": "10", "GOMAXPROCS": "2", "TMPDIR": c.Path("tmp")})
	return c
}

// add makes variables that the identity may read, each with a value.
func (c *conjur) add(ids ...string) {
	c.Helper()
	c.Declare(ids...)
	c.rotate(ids...)
}

// largest is how many bytes a value has at most; more than a page, so that a
// reader can meet a file that is written in place.
const largest = 16 << 10

// rotate gives variables new values at one moment.
func (c *conjur) rotate(ids ...string) {
	c.Helper()
	set := map[string][]byte{}
	c.mu.Lock()
	for _, id := range ids {
		if c.away[id] {
			continue
		}
		value := world.Marker + rand.Text() + strings.Repeat("x", c.random.IntN(largest)) + "-end"
		if c.ever[id] == nil {
			c.ever[id] = map[string]bool{}
		}
		set[id], c.value[id], c.ever[id][digest(value)] = []byte(value), value, true
	}
	c.mu.Unlock()
	if len(set) == 0 {
		return
	}
	c.Set(set)
}

// digest identifies a whole value by its text and its length.
func digest(value string) string {
	return value[:min(len(world.Marker)+26, len(value))] + "/" + strconv.Itoa(len(value))
}

// any gives one of all variables.
func (c *conjur) any() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return pick(c.random, slices.Sorted(maps.Keys(c.value)))
}

func pick[T any](random *mathrand.Rand, of []T) T { return of[random.IntN(len(of))] }

// revoke takes a variable away: the right to read it, or all of it.
func (c *conjur) revoke(id string, all bool) {
	c.Helper()
	c.mu.Lock()
	away := c.away[id]
	c.away[id] = true
	c.mu.Unlock()
	switch {
	case away:
	case all:
		c.Remove(id)
	default:
		c.Deny(id)
	}
}

// restore declares variables again, each with a new value.
func (c *conjur) restore(ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.mu.Lock()
		away := c.away[id]
		delete(c.away, id)
		c.mu.Unlock()
		if away {
			c.add(id)
		}
	}
}

// edit counts one more edit of the templates.
func (c *conjur) edit() (number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edits++
	return c.edits
}

// place is a file, or a key of a Secret's data.
type place struct {
	name string
	ids  []string // of the variables in it
	// form is its content, with %s for each value and editMark for the number
	// of the template's edit.
	form string
	// mayLack means that the content may be missing for a while, because its variable may be
	// revoked or somebody may delete it.
	mayLack bool
}

// editMark stands in a form for the number of the template's last edit.
const editMark = "EDIT"

// due is the content that the place must have in the end.
func (c *conjur) due(p place) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var values []any
	for _, id := range p.ids {
		values = append(values, c.value[id])
	}
	return fmt.Sprintf(strings.ReplaceAll(p.form, editMark, strconv.Itoa(c.edits)), values...)
}

// reader checks the content of a place at any time.
type reader struct {
	c       *conjur
	p       place
	pattern *regexp.Regexp
}

func (c *conjur) reader(p place) reader {
	text := regexp.QuoteMeta(p.form)
	text = strings.ReplaceAll(text, editMark, `[0-9]+`)
	text = strings.ReplaceAll(text, "%s", "("+world.Marker+"[A-Z2-7]{26}x*-end)")
	return reader{c, p, regexp.MustCompile("^" + text + "$")}
}

// check returns an error without a value unless the content is whole: in the
// place's form, and of values that its variables have had.
func (r reader) check(content string) error {
	found := r.pattern.FindStringSubmatch(content)
	if found == nil {
		return fmt.Errorf("%s is torn, at a length of %d bytes", r.p.name, len(content))
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for i, id := range r.p.ids {
		if !r.c.ever[id][digest(found[i+1])] {
			return fmt.Errorf("%s holds what %s never was, of %d bytes", r.p.name, id, len(found[i+1]))
		}
	}
	return nil
}

func TestReaderTellsTornFromWhole(t *testing.T) {
	c := newConjur(t, seeded(t))
	c.add("a", "b")
	r := c.reader(place{name: "here", ids: []string{"a", "b"}, form: `{EDIT "a":"%s","b":"%s"}`})
	whole := c.due(r.p)
	if err := r.check(whole); err != nil {
		t.Error(err)
	}
	c.rotate("a", "b")
	if err := r.check(whole); err != nil {
		t.Errorf("with the values before: %v", err)
	}
	end := len(whole) - len(`-end"}`)
	for what, content := range map[string]string{
		"empty":              "",
		"its end is missing": whole[:len(whole)-1],
		"too much":           whole + "}",
		"shorter inside":     whole[:end-1] + whole[end:],
		"longer inside":      whole[:end] + "x" + whole[end:],
		"exchanged":          fmt.Sprintf(`{0 "a":"%s","b":"%[1]s"}`, c.value["b"]),
	} {
		if r.check(content) == nil {
			t.Errorf("taken for whole, but it is not: %s", what)
		}
	}
}
