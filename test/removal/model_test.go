package removal

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// model is Conjur as it really is, and all that a judge needs to know of what
// it has answered. It answers as the genuine server does.
type model struct {
	mu     sync.Mutex
	vars   map[string]*truth
	noHost bool // the identity is deleted
	tokens map[string]time.Time
	fault  *fault    // nil: all is well
	knew   time.Time // when it last said who we are
	// lagging is what a follower shows that lags behind, which answers every
	// other request, more or less; nil: there is none.
	lagging map[string]shown
	stale   bool // the request under way is answered by it
	named   bool // a refused batch names all that are missing, as the embedded server's does
}

// truth is one variable.
type truth struct {
	state   state
	value   string
	version int
	since   time.Time       // when it went, or came back
	changed time.Time       // when anything about it did
	words   []word          // that it is gone, in a row, since it was last answered with a value
	before  []word          // those that the last such answer ended
	ended   time.Time       // when it did
	found   time.Time       // when it was last answered with a value
	lost    bool            // it went, and has not been answered with a value since
	lives   map[string]life // :: value → when it was the variable's
}

// life is the time in which a value was that of a variable; no end: it is.
type life struct{ from, to time.Time }

type state string

const (
	there     state = "there"
	missing   state = "missing"
	forbidden state = "forbidden"
	invisible state = "invisible"
)

// word is one time that the server said of a variable, asked for by itself,
// that it is gone.
type word struct {
	at, token time.Time
}

func newModel(ids []string) *model {
	m := &model{vars: map[string]*truth{}, tokens: map[string]time.Time{}}
	for i, id := range ids {
		v := &truth{state: there, since: time.Now(), changed: time.Now(), lives: map[string]life{}}
		v.set(fmt.Sprintf("%d of %s", i, id))
		m.vars[id] = v
	}
	return m
}

func (m *model) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// change puts variables into a state at one moment; with new values, if there
// are any.
func (m *model) change(s state, values map[string]string) {
	m.with(func() {
		for id, value := range values {
			v := m.vars[id]
			if (v.state == there) != (s == there) {
				v.since = time.Now()
			}
			v.state, v.changed = s, time.Now()
			v.lost = v.lost || s != there
			if value != "" {
				v.set(value)
			}
		}
	})
}

func (v *truth) set(value string) {
	now := time.Now()
	v.lives[v.value] = life{v.lives[v.value].from, now}
	v.lives[value] = life{from: now}
	v.value = value
	v.version++
}

// ServeHTTP answers after a millisecond, so that time goes on.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := ask(r)
	_, _ = io.Copy(io.Discard, r.Body)
	time.Sleep(time.Millisecond)
	m.mu.Lock()
	f := m.fault
	m.mu.Unlock()
	if f != nil && f.concerns(q) {
		f.answer(w, r)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stale = m.lagging != nil && rand.IntN(2) == 0
	issued, known := m.tokens[r.Header.Get("Authorization")]
	switch {
	case q.kind == login && m.noHost:
		bare(401)(w, r)
	case q.kind == login:
		m.login(w)
	case !known:
		says(401, text, "Unauthorized: Invalid token")(w, r)
	case q.kind == whoami:
		m.knew = time.Now()
		says(200, jsonT, `{"account":"dev","username":"host/web"}`)(w, r)
	case m.noHost:
		bare(403)(w, r)
	case q.kind == single:
		m.single(w, r, q.ids[0], issued)
	case q.kind == check:
		m.check(w, r, q, issued)
	case q.kind == batch:
		m.batch(w, r, q.ids)
	case q.kind == list:
		m.list(w, r)
	default:
		bare(404)(w, r)
	}
}

// tokenLife is short, so that histories have many tokens.
const tokenLife = 40 * time.Second

func (m *model) login(w http.ResponseWriter) {
	now := time.Now()
	claims := fmt.Sprintf(`{"iat":%d,"sub":"host/web","exp":%d}`, now.Unix(), now.Add(tokenLife).Unix())
	token := fmt.Sprintf(`{"protected":"p","payload":%q,"signature":"%d"}`,
		base64.URLEncoding.EncodeToString([]byte(claims)), len(m.tokens))
	m.tokens[`Token token="`+base64.StdEncoding.EncodeToString([]byte(token))+`"`] = now
	w.Header().Set("Content-Type", jsonT)
	_, _ = io.WriteString(w, token)
}

func (m *model) single(w http.ResponseWriter, r *http.Request, id string, issued time.Time) {
	switch v, s := m.vars[id], m.show(id); s.state {
	case there:
		m.answered(v)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment")
		w.Header().Set("Content-Transfer-Encoding", "binary")
		tagged(w, r, fmt.Sprintf("%s-%d", id, s.version), func() { _, _ = io.WriteString(w, s.value) })
	case forbidden:
		bare(403)(w, r) // it is the check that counts
	default:
		v.says(issued)
		says(404, jsonT, gone(account, id))(w, r)
	}
}

// says notes a word that the variable is gone.
func (v *truth) says(issued time.Time) { v.words = append(v.words, word{time.Now(), issued}) }

func (m *model) answered(v *truth) {
	v.found, v.lost = time.Now(), false
	if len(v.words) > 0 {
		v.words, v.before, v.ended = nil, v.words, v.found
	}
}

func (m *model) check(w http.ResponseWriter, r *http.Request, q question, issued time.Time) {
	switch s := m.show(q.ids[0]); {
	case s.state != there && s.state != forbidden:
		says(404, jsonT, `{"error":{"code":"not_found","message":"Variable not found","target":"variable"}}`)(w, r)
	case q.privilege == "":
		if s.state == forbidden { // the resource says so too
			m.vars[q.ids[0]].says(issued)
		}
		says(200, jsonT, fmt.Sprintf(`{"id":"dev:variable:%s","permissions":[{"privilege":"execute","role":"dev:group:team"}]}`, q.ids[0]))(w, r)
	case s.state == forbidden && q.privilege == "execute":
		m.vars[q.ids[0]].says(issued)
		bare(404)(w, r)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (m *model) batch(w http.ResponseWriter, r *http.Request, ids []string) {
	in := func(states ...state) func(string) bool {
		return func(id string) bool { return slices.Contains(states, m.show(id).state) }
	}
	switch first := slices.IndexFunc(ids, in(missing)); {
	case slices.ContainsFunc(ids, in(forbidden, invisible)):
		bare(403)(w, r)
		return
	case first >= 0:
		body := gone(account, ids[first])
		if m.named {
			var all []string
			for _, id := range ids {
				if in(missing)(id) {
					all = append(all, account+":variable:"+id)
				}
			}
			list, _ := json.Marshal(all)
			body = strings.TrimSuffix(body, "}}") + `,"details":{"variables":` + string(list) + `}}}`
		}
		says(404, jsonT, body)(w, r)
		return
	}
	values, tag := map[string]string{}, ""
	for _, id := range ids {
		m.answered(m.vars[id])
		s := m.show(id)
		values[account+":variable:"+id] = base64.StdEncoding.EncodeToString([]byte(s.value)) + "\n"
		tag += fmt.Sprintf("%s-%d,", id, s.version)
	}
	w.Header().Set("Content-Type", jsonT)
	w.Header().Set("Content-Encoding", "base64")
	tagged(w, r, tag, func() { _ = json.NewEncoder(w).Encode(values) })
}

// tagged answers 304 where the tag is known.
func tagged(w http.ResponseWriter, r *http.Request, tag string, body func()) {
	tag = `W/"` + tag + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body()
}

// fault is something that is wrong with the answers to some questions.
type fault struct {
	name     string
	concerns func(question) bool
	answer   answer
}

func allQuestions(question) bool { return true }

func of(kinds ...kind) func(question) bool {
	return func(q question) bool { return slices.Contains(kinds, q.kind) }
}

// faults are those of histories. None of them is Conjur's word about anything.
var faults = []fault{
	{"closed", allQuestions, hangUp("")},
	{"503", allQuestions, bare(503)},
	{"500", allQuestions, bare(500)},
	{"hangs", allQuestions, silent("")},
	{"proxy's 404", allQuestions, says(404, html, page)},
	{"proxy's 403", allQuestions, says(403, html, page)},
	{"bare 403", allQuestions, bare(403)},
	{"bare 403 for the data", of(single, batch), bare(403)},
	{"bare 403, but who are you", of(single, batch, check), bare(403)},
	{"bare 404", allQuestions, bare(404)},
	{"bare 403 for values and 404 for resources", of(single, batch, check), gateway},
	{"bare 403 for values and 404 for checks", func(q question) bool { return q.data() || q.privilege != "" }, gateway},
	{"another account's 404", of(single, batch), says(404, jsonT, gone("prod", "app/v0"))},
	{"another variable's 404", of(single), says(404, jsonT, gone(account, "app/other"))},
	{"one variable's 404 for all", of(batch), says(404, jsonT, gone(account, "app/v0"))},
	{"no logins", of(login), bare(401)},
	{"logins fail", of(login), bare(503)},
	{"401", of(single, batch, whoami, check), bare(401)},
	{"nobody knows us", of(whoami), bare(500)},
	{"no check", of(check), bare(503)},
	{"no batch", of(batch), says(500, jsonT, "{}")},
	{"no single", of(single), says(500, jsonT, "{}")},
	{"no list", of(list), bare(503)},
	{"a list without what is asked for", of(list), says(200, jsonT, `[{"id":"dev:variable:app/other"}]`)},
	{"truncated", of(single, batch), hangUp("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"error\":")},
}
