package variables

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// reading is the answer about an individually requested variable.
type reading struct {
	Answer
	etag string // a hash of the value, never shown
	same bool   // the ETag still matches: Found, but without Value
}

// readVariable requests one variable individually. With an ETag the request is
// conditional.
//
// It collects the proof of "gone". The server answers 404 with the variable's name
// if the variable does not exist, is empty or is invisible. It answers 403 without
// a body if the variable is visible but not readable. One answer alone proves
// nothing. The 404 must have the server's own format and name this variable. A
// proxy may also answer 403 (see forbid). In both cases /whoami must confirm our
// identity with the same token.
func (k *call) readVariable(id, etag string) reading {
	k.memory.askedSingly(id)
	if k.memory.suspects(id) {
		k.reconnect()
	}
	v := k.conjur.Variable(k.ctx, id, etag)
	if moment, due := k.memory.newerThan(id); due && reasonOf(v) != "" && !v.Token.Issued().After(moment) {
		if err := k.conjur.Renew(k.ctx, moment); err != nil {
			return reading{Answer: unknown(fmt.Errorf(
				"variable %q seems to be %s, or this identity to be gone: there is no newer access token to tell by: %w", id, reasonOf(v), err))}
		}
		v = k.conjur.Variable(k.ctx, id, etag)
	}
	switch v.Form {
	case conjur.Given:
		k.anyGood, k.conjurAnswered = true, true
		return reading{Answer: Answer{Verdict: Found, Value: v.Found[id]}, etag: v.ETag}
	case conjur.Unchanged:
		k.anyGood, k.conjurAnswered = true, true
		return reading{Answer: Answer{Verdict: Found}, etag: v.ETag, same: true}
	case conjur.Missing, conjur.Forbidden:
		k.refused = true
		k.conjurAnswered = k.conjurAnswered || v.Form == conjur.Missing
		return k.prove(id, reasonOf(v), v.Token)
	case conjur.Formless:
		return k.readByBatch(id, v.Err)
	}
	if v.Form == conjur.Down || k.blameServer(v.Reading) && k.inTrouble(id) {
		k.stop = v.Err
	}
	return reading{Answer: unknown(v.Err)}
}

// reconnect makes the next request of this call use a new connection, once. Behind
// a load balancer that may lead to another server, because one of them may lag.
func (k *call) reconnect() {
	if !k.reconnected {
		k.reconnected = true
		k.conjur.Reconnect()
	}
}

// reasonOf returns the Reason that an answer gives, or "" if it does not call the
// variable gone. It proves nothing yet.
func reasonOf(v conjur.Values) Reason {
	switch v.Form {
	case conjur.Missing:
		return Missing
	case conjur.Forbidden:
		return Forbidden
	}
	return ""
}

// readByBatch reads a value by a batch of one, which names the variable, if the
// individual answer lacked Conjur's form.
func (k *call) readByBatch(id string, cause error) reading {
	if !conjur.Batchable(id) {
		return reading{Answer: unknown(cause)}
	}
	k.budget--
	v := k.batch(newChunk([]string{id}, k.encodedLen))
	value, ok := v.Found[id]
	switch {
	case ok:
		k.anyGood, k.conjurAnswered = true, true
		return reading{Answer: Answer{Verdict: Found, Value: value}}
	case v.Form == conjur.Down:
		k.stop = v.Err
	}
	return reading{Answer: unknown(cmp.Or(v.Err, v.Bad[id], cause))}
}

// prove completes one observation that a variable is gone.
func (k *call) prove(id string, reason Reason, t *conjur.Token) reading {
	who := k.knownBy(t)
	if who.err == nil && reason == Forbidden {
		who.err = k.forbid(id, who.Role, t)
	}
	if who.err != nil {
		return reading{Answer: unknown(who.err)}
	}
	k.conjurAnswered = true
	return reading{Answer: k.memory.suspect(id, observation{reason: reason, identity: who.Name, issued: t.Issued(), call: k.step})}
}

// identity is the server's name for us with a token. It is requested once per call
// and token.
type identity struct {
	conjur.Identity
	err error // why it may not be one of our account
}

func (k *call) knownBy(t *conjur.Token) identity {
	who, known := k.whoami[t]
	if !known {
		var r conjur.Reading
		who.Identity, r = k.conjur.Whoami(k.ctx, t)
		who.err = k.probed(r).Err
		k.whoami[t] = who
	}
	return who
}

// probed charges the budget for a request besides the one for a value. Only this
// token can answer it. Without an answer, the call sends no further requests.
func (k *call) probed(r conjur.Reading) conjur.Reading {
	k.budget--
	if r.Token == nil {
		k.stop = r.Err
	}
	return r
}

const (
	// manyBare500s is the number of 500 answers without a body that indicate a
	// server in trouble rather than a faulty variable. No good answer may be among them.
	manyBare500s = 6
	// leastTrouble is how long a single such answer suffices afterwards.
	leastTrouble = time.Minute
)

// blameServer reports whether an answer shows a failed server. The server gives the
// same answer for a value that it cannot decrypt, and for everything while its
// database is down. After a good answer in the same call, the value is the cause.
func (k *call) blameServer(r conjur.Reading) bool { return r.Form == conjur.Failed && !k.anyGood }

// inTrouble reports, after such an answer about the variable, whether the server is
// in trouble, so that further requests are useless. Unless this was determined
// recently, a question that needs the database but no value decides.
func (k *call) inTrouble(id string) bool {
	if k.bare500s == 0 && (k.trouble.On() || !k.answersCheck(id)) {
		k.bare500s = manyBare500s
	}
	k.bare500s++
	if k.bare500s < manyBare500s {
		return false
	}
	if !k.trouble.On() {
		k.trouble.Begin(leastTrouble)
	}
	return true
}

func (k *call) answersCheck(id string) bool {
	r := k.conjur.Check(k.ctx, nil, id, conjur.Execute)
	return r.Status != 0 && r.Status < http.StatusInternalServerError
}
