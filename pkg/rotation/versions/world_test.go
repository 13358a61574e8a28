package versions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// A world is a set in Conjur, two engines that work on it, the outside and two
// targets, at one moment. It is a value, so that it can be a map's key.
type world struct {
	cur, win uint16    // the document in Conjur, and the one that counts of all that were there
	users    [2]user   // the outside
	shown    [2]uint16 // the document that each target shows
	engines  [2]engine
	flight   uint16 // a request that was sent and has not arrived; 0: none
	ids      uint8  // how many were given away
	stray    uint16 // a document that the one that counts was not built on; 0: none
	passes   uint8  // how often the Lease went to the other engine
}

// user is a database user, with what it carries.
type user struct {
	version, fence uint8 // numbers of ids
	login          bool
}

// engine is what one knows between two acts.
type engine struct {
	stage stage
	at    uint16 // the document that it read, or the plan that it follows
}

type stage uint8

const (
	off    stage = iota // it has crashed, or is done, and reads next
	read                // it looks at the outside, the targets and the commands next
	acting              // it has a plan
)

// plan is what an engine does next, and after each outcome of that. Facts that
// make no difference to what it does make no difference here.
type plan struct {
	request
	good, bad uint16 // plans; 0: it reads anew
}

// request is an act on Conjur or the outside.
type request struct {
	verb      Verb   // Write, Apply, Verify or Revoke
	doc, base uint16 // of Write
	login     user   // of the others
	turn      uint8
}

// known are the facts that an engine has, small enough to enumerate.
type known struct {
	now                            uint8
	due, introduced, ahead         bool
	left, shown                    uint16 // bits, by place in the document
	command                        uint8  // place in commands
	apply, coming, primary, revoke uint8  // outcomes: 0 is not tried
}

const (
	yes = 1
	no  = 2
)

var (
	commands = []string{"", "rollback", "abort", "retire", "promote", "now"}
	epoch    = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
)

// rules are what a run takes for granted.
type rules struct {
	outside    bool // logins instead of keys
	compare    bool // Conjur refuses a write over what was not read
	late       bool // requests can arrive late
	commands   []uint8
	ids        uint8 // how many are given away at most
	lease      bool  // only one engine works, unless the other one slept meanwhile
	passes     uint8 // how often the Lease goes to the other at most
	noFence    bool  // without rule 6
	noConflict bool  // without the rule which of two documents counts
}

// model has all documents and plans that were met, by number.
type model struct {
	rules
	docs    []*Document
	facts   []docFacts
	numbers map[string]uint16
	plans   []plan
	planned map[plan]uint16
	decided map[asked]outlook
	key     []byte     // room for the key of a document
	dice    *rand.Rand // chooses what an engine finds out; nil: all that it may
}

type asked struct {
	doc   uint16
	known known
}

// outlook is what follows from facts.
type outlook struct {
	plan    uint16
	takesID bool
}

// docFacts is what a judge needs of a document.
type docFacts struct {
	step    uint64
	primary uint8 // number of its id; 0: none
	user    int   // of the primary
	usable  uint16
}

func newModel(r rules) *model {
	m := &model{rules: r, numbers: map[string]uint16{}, planned: map[plan]uint16{}, decided: map[asked]outlook{}}
	m.docs, m.facts, m.plans = []*Document{nil}, []docFacts{{}}, []plan{{}}
	return m
}

// start is a set with one primary that all use.
func (m *model) start() world {
	id := idOf(1)
	doc := New("us").Make(id, parts(id, 0), false, Entry{At: at(1)}).Promote(id, Entry{At: at(1)})
	n := m.number(doc)
	w := world{cur: n, win: n, shown: [2]uint16{n, n}, ids: 1}
	if m.outside {
		w.users[0] = user{1, 1, true}
	}
	return w
}

func at(n uint8) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

func idOf(n uint8) string { return at(n).Format("20060102t150405") }

func numberOf(id string) uint8 {
	n, err := strconv.ParseUint(id[len("20061122t00"):], 10, 16) // minutes and seconds
	if err != nil {
		panic(err)
	}
	return uint8(n/100*60 + n%100)
}

func parts(id string, turn int) map[string]secret.Value {
	return map[string]secret.Value{
		"user":     secret.New(fmt.Appendf(nil, "%d", turn)),
		"password": secret.New([]byte(id)),
	}
}

func turnOf(v Version) int { return int(v.Parts["user"].Bytes()[0] - '0') }

// number returns the place of a document, without its times and the lines of
// its log, which decide nothing here.
func (m *model) number(d *Document) uint16 {
	key := strconv.AppendBool(strconv.AppendUint(m.key[:0], d.Step, 10), d.Paused)
	for _, v := range d.Versions {
		key = append(append(append(key, ' '), v.ID...), v.State...)
		key = append(strconv.AppendUint(key, v.Step, 10), v.Fence...)
		key = strconv.AppendBool(strconv.AppendBool(key, v.Promoted.IsZero()), v.Forced)
		if v.State != Retired {
			key = append(key, byte(turnOf(v)))
		}
	}
	for _, e := range d.Log {
		if e.Command != "" {
			key = append(append(key, ' '), e.Command...)
		}
	}
	m.key = key
	if n, ok := m.numbers[string(key)]; ok {
		return n
	}
	value, err := d.Encode()
	if err == nil && (m.dice == nil || len(m.docs)%16 == 0) {
		_, err = Parse(value)
	}
	if err != nil {
		panic(fmt.Sprintf("a document that cannot be read was written: %v\n%s", err, value))
	}
	f := docFacts{step: d.Step}
	for _, v := range d.Versions {
		if v.State == Primary {
			f.primary, f.user = numberOf(v.ID), turnOf(v)
		}
		if v.State != Pending && v.State != Retired {
			f.usable |= 1 << numberOf(v.ID)
		}
	}
	n := uint16(len(m.docs))
	if n == 0 || len(m.plans) > math.MaxUint16 {
		panic("too many documents or plans")
	}
	m.docs, m.facts = append(m.docs, d), append(m.facts, f)
	m.numbers[string(key)] = n
	return n
}

// outlook returns what an engine does that read doc and has these facts.
func (m *model) outlook(doc uint16, k known) outlook {
	if o, ok := m.decided[asked{doc, k}]; ok {
		return o
	}
	o := m.ask(doc, k)
	m.decided[asked{doc, k}] = o
	return o
}

// ask asks the real Next, and again with each outcome of what that says.
func (m *model) ask(n uint16, k known) outlook {
	doc, f := m.docs[n], m.realFacts(n, k)
	a := Next(doc, Policy{Owner: "us", Outside: m.outside}, f)
	var p plan
	var o outlook
	switch p.verb = a.Verb; a.Verb {
	case Wait, Idle:
		return o
	case Make:
		turn := 0
		if primary, ok := doc.Primary(); ok {
			turn = 1 - turnOf(primary)
		}
		a.Doc = doc.Make(a.Version, parts(a.Version, turn), m.outside, Entry{At: f.Now, Command: a.Command})
		fallthrough
	case Write:
		p.verb, p.doc, p.base = Write, m.number(a.Doc), n
		o.takesID = a.Doc.newest() != doc.newest()
	default:
		v, _ := doc.Version(a.Version)
		p.login, p.turn = user{numberOf(v.ID), numberOf(v.Fence), true}, uint8(turnOf(v))
		good, bad := k, k
		for outcome, k := range map[uint8]*known{yes: &good, no: &bad} {
			switch {
			case a.Verb == Apply:
				k.apply = outcome
			case a.Verb == Revoke:
				k.revoke = outcome
			case v.State == Primary:
				k.primary = outcome
			default:
				k.coming = outcome
			}
		}
		p.good, p.bad = m.outlook(n, good).plan, m.outlook(n, bad).plan
	}
	o.plan = m.plan(p)
	return o
}

func (m *model) plan(p plan) uint16 {
	if _, ok := m.planned[p]; !ok {
		m.planned[p] = uint16(len(m.plans))
		m.plans = append(m.plans, p)
	}
	return m.planned[p]
}

func (m *model) realFacts(n uint16, k known) Facts {
	doc := m.docs[n]
	f := Facts{Now: at(k.now), Due: k.due, Introduced: k.introduced, Left: map[string]bool{}, Shown: map[string]bool{}, Tried: map[Try]bool{}}
	if k.ahead {
		f.Seen = doc.Step + 1
	}
	name := commands[k.command]
	if name != "" && name != "retire" && name != "promote" {
		f.Command = Command{ID: name, At: f.Now, Verb: name}
	}
	for i, v := range doc.Versions {
		f.Left[v.ID] = k.left&(1<<i) != 0
		f.Shown[v.ID] = k.shown&(1<<i) != 0
		tried := func(verb Verb, outcome uint8) {
			if outcome != 0 {
				f.Tried[Try{verb, v.ID}] = outcome == yes
			}
		}
		switch v.State {
		case Pending, Accepted, Returning:
			tried(Apply, k.apply)
			tried(Verify, k.coming)
		case Primary:
			tried(Verify, k.primary)
		case Revoking:
			tried(Revoke, k.revoke)
		}
		if name == "retire" && v.State == Retiring || name == "promote" && v.State == Accepted {
			f.Command = Command{ID: name, At: f.Now, Verb: name, Version: v.ID}
		}
	}
	return f
}
