package variables

import (
	"cmp"
	"fmt"

	"github.com/secretsync/syncer/pkg/conjur"
)

// reading is the answer about a variable that was asked for by itself.
type reading struct {
	Answer
	etag string // a hash of the value, never shown
	same bool   // the value is that of the ETag that was asked with: Found, but without Value
}

// read asks for one variable by itself; conditionally, if an ETag is given.
//
// It is here that proof of "gone" is gathered. The server answers 404 with the
// variable's name for what does not exist, is empty or cannot be seen, and 403
// without a body for what can be seen but not read. Neither is believed alone:
// the 404 must be in the server's own form and about this very variable, a 403
// is what any proxy may say too (see forbid), and then /whoami must know us by
// the same token.
func (k *call) read(id, etag string) reading {
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
		k.anyGood, k.heard = true, true
		return reading{Answer: Answer{Verdict: Found, Value: v.Found[id]}, etag: v.ETag}
	case conjur.Unchanged:
		k.anyGood, k.heard = true, true
		return reading{Answer: Answer{Verdict: Found}, etag: v.ETag, same: true}
	case conjur.Missing, conjur.Forbidden:
		k.refused = true
		k.heard = k.heard || v.Form == conjur.Missing
		return k.prove(id, reasonOf(v), v.Token)
	case conjur.Formless:
		return k.readByBatch(id, v.Err)
	}
	if v.Form == conjur.Down || k.blameServer(v.Reading) && k.inTrouble(id) {
		k.stop = v.Err
	}
	return reading{Answer: unknown(v.Err)}
}

// reconnect has the next request of this call go over a new connection, once: to
// another of several servers behind one address, maybe, of which one may lag
// behind.
func (k *call) reconnect() {
	if !k.afresh {
		k.afresh = true
		k.conjur.Reconnect()
	}
}

// reasonOf returns how an answer calls a variable gone; empty if it does not. It
// proves nothing yet.
func reasonOf(v conjur.Values) Reason {
	switch v.Form {
	case conjur.Missing:
		return Missing
	case conjur.Forbidden:
		return Forbidden
	}
	return ""
}

// readByBatch reads a value of which the single answer did not have Conjur's
// form in a batch of one, which names the variable.
func (k *call) readByBatch(id string, cause error) reading {
	if !conjur.Batchable(id) {
		return reading{Answer: unknown(cause)}
	}
	k.budget--
	v := k.batch(newChunk([]string{id}, k.encodedLen))
	value, ok := v.Found[id]
	switch {
	case ok:
		k.anyGood, k.heard = true, true
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
	k.heard = true
	return reading{Answer: k.memory.suspect(id, observation{reason: reason, identity: who.Name, issued: t.Issued(), call: k.step})}
}

// identity is how the server knows us by a token; asked once in a call for
// each token.
type identity struct {
	conjur.Identity
	err error // why it is not sure that we are one of our account
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

// probed pays for a request beyond the question for a value, which only this
// token can answer. Without an answer nothing else is asked for.
func (k *call) probed(r conjur.Reading) conjur.Reading {
	k.budget--
	if r.Token == nil {
		k.stop = r.Err
	}
	return r
}
