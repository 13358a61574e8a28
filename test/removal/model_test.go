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

// model is the true state of Conjur, and everything that a judge must know about its
// answers. It answers like the genuine server.
type model struct {
	mu     sync.Mutex
	vars   map[string]*truth
	noHost bool // the identity is deleted
	tokens map[string]time.Time
	fault  *fault    // nil: all is well
	knew   time.Time // when it last answered whoami with our name
	// lagging is the state that a lagging follower shows. The follower answers about every
	// second request. nil: there is none.
	lagging map[string]shown
	stale   bool // the follower answers the present request
	named   bool // the refusal of a batch names all missing variables, as conjurd's does
}

// truth is the true state of one variable.
type truth struct {
	state   state
	value   string
	version int
	since   time.Time       // when it last disappeared or returned
	changed time.Time       // when it last changed in any way
	words   []word          // consecutive answers that it is gone, since the last answer with a value
	before  []word          // the words before that last answer with a value
	ended   time.Time       // the time of that answer
	found   time.Time       // when it was last answered with a value
	lost    bool            // it disappeared, and was not answered with a value since
	lives   map[string]life // value → when the variable had it
}

// life is the period in which a variable had a value. Without an end, the variable still has
// it.
type life struct{ from, to time.Time }

type state string

const (
	there     state = "there"
	missing   state = "missing"
	forbidden state = "forbidden"
	invisible state = "invisible"
)

// word is an answer to a request for one variable that reports it as gone.
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

// change sets the state of variables at one moment, and their new values, if given.
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

// ServeHTTP answers after a millisecond, so that virtual time passes.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := ask(r)
	_, _ = io.Copy(io.Discard, r.Body)
	time.Sleep(time.Millisecond)
	if r.Context().Err() != nil {
		return // the server has gone; the answer would count as heard
	}
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
		bare(403)(w, r) // this check decides
	default:
		v.says(issued)
		says(404, jsonT, gone(account, id))(w, r)
	}
}

// says records an answer that the variable is gone.
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
		if s.state == forbidden { // the resource confirms it
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

// tagged answers 304 if the client sends the current tag.
func tagged(w http.ResponseWriter, r *http.Request, tag string, body func()) {
	tag = `W/"` + tag + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body()
}

// fault is an error in the answers to some requests.
type fault struct {
	name     string
	concerns func(question) bool
	answer   answer
}

func allQuestions(question) bool { return true }

func of(kinds ...kind) func(question) bool {
	return func(q question) bool { return slices.Contains(kinds, q.kind) }
}

// faults are the faults of histories. None of them is an answer that only Conjur can give.
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
