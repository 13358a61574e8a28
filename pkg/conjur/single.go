package conjur

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/secretsync/syncer/pkg/secret"
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
	r, err := k.askVariable(id, etag)
	if err != nil {
		return reading{Answer: unknown(err)}
	}
	reason := k.goneForm(id, r)
	if moment, due := k.memory.newerThan(id); reason != "" && due && !r.token.issued.After(moment) {
		if err := k.tokens.newer(k.ctx, moment); err != nil {
			return reading{Answer: unknown(fmt.Errorf(
				"variable %q seems to be %s, or this identity to be gone: there is no newer access token to tell by: %w", id, reason, err))}
		}
		if r, err = k.askVariable(id, etag); err != nil {
			return reading{Answer: unknown(err)}
		}
		reason = k.goneForm(id, r)
	}
	switch {
	case r.status == http.StatusOK:
		return k.value(id, r)
	case r.status == http.StatusNotModified && etag != "":
		k.anyGood = true
		return reading{Answer: Answer{Verdict: Found}, etag: etag, same: true}
	case reason != "":
		return k.prove(id, reason, r.token)
	case r.status == http.StatusNotFound:
		return reading{Answer: unknown(r.statusError(notConjur))}
	}
	err = r.statusError("")
	if isDown(r.status) || k.isBare500(r.status, len(r.body)) && k.inTrouble(id) {
		k.stop = err
	}
	return reading{Answer: unknown(err)}
}

// reconnect has the next request of this call go over a new connection, once: to
// another of several servers behind one address, maybe, of which one may lag
// behind.
func (k *call) reconnect() {
	if !k.afresh {
		k.afresh = true
		k.wire.close()
	}
}

func (k *call) askVariable(id, etag string) (*reply, error) {
	req, err := k.variableRequest(id)
	if err != nil {
		return nil, err
	}
	r, err := k.ask(k.ctx, KindVariable, fmt.Sprintf("%q", id), conditional(req, etag))
	if err != nil && !errors.Is(err, errTooLong) {
		k.stop = err
	}
	return r, err
}

// goneForm tells whether an answer has a form in which the server calls a
// variable gone; empty if not. It proves nothing yet.
func (k *call) goneForm(id string, r *reply) Reason {
	switch {
	case r.status == http.StatusNotFound:
		if named, ok := namedMissing(r.header, r.body, k.config.Account); ok && named == id {
			return Missing
		}
	case r.status == http.StatusForbidden && len(r.body) == 0:
		return Forbidden
	}
	return ""
}

func (k *call) value(id string, r *reply) reading {
	detail := ""
	switch {
	case r.header.Get("Content-Encoding") != "":
		detail = errEncoding.Error()
	case len(r.body) == 0:
		detail = errEmpty.Error()
	case !r.isSentValue():
		r.wipe()
		return k.valueByBatch(id, r)
	}
	if detail != "" {
		r.wipe()
		return reading{Answer: unknown(r.statusError(detail))}
	}
	k.anyGood = true
	return reading{Answer: Answer{Verdict: Found, Value: secret.New(r.body)}, etag: r.header.Get("ETag")}
}

// valueByBatch reads a value of which the single answer did not have Conjur's
// form in a batch of one, which names the variable.
func (k *call) valueByBatch(id string, r *reply) reading {
	if needsSingle(id) {
		return reading{Answer: unknown(r.statusError(notConjur))}
	}
	k.budget--
	a := k.batch(newChunk([]string{id}, k.encodedLen))
	v, ok := a.found[id]
	switch {
	case ok:
		k.anyGood = true
		return reading{Answer: Answer{Verdict: Found, Value: v}}
	case a.outcome == down:
		k.stop = a.err
	}
	return reading{Answer: unknown(cmp.Or(a.err, a.bad[id], error(r.statusError(notConjur))))}
}

// prove completes one observation that a variable is gone.
func (k *call) prove(id string, reason Reason, t *token) reading {
	who := k.knownBy(t)
	if who.err == nil && reason == Forbidden {
		who.err = k.forbid(id, who.name, t)
	}
	if who.err != nil {
		return reading{Answer: unknown(who.err)}
	}
	return reading{Answer: k.memory.suspect(id, observation{reason: reason, identity: who.name, issued: t.issued, call: k.step})}
}

// identity is how the server knows us by a token; asked once in a call for
// each token.
type identity struct {
	name string
	err  error // why it is not sure that we are one of our account
}

func (k *call) knownBy(t *token) identity {
	who, known := k.whoami[t]
	if !known {
		who = k.askIdentity(t)
		k.whoami[t] = who
	}
	return who
}

// isOurs reports whether a name that the server knows us by is that which
// logged in. There a user may be written with its kind.
func (k *call) isOurs(name string) bool {
	owner := strings.TrimPrefix(k.tokens.owner(), "user/")
	return owner == "" || owner == name
}

func (k *call) askIdentity(t *token) identity {
	req, err := k.whoamiRequest()
	if err != nil {
		return identity{err: err}
	}
	r, err := k.probe(t, KindWhoami, "", req)
	if err != nil {
		return identity{err: err}
	}
	switch account, name := decodeWhoami(r.body); {
	case r.status != http.StatusOK, account == "":
		return identity{err: r.statusError("so it is not sure who was asked")}
	case account != k.config.Account:
		return identity{err: r.statusError("for another account than ours")}
	case !k.isOurs(name):
		return identity{err: r.statusError(fmt.Sprintf("for %q, and not for %q, so what that one cannot see is no proof; "+
			"see to the credentials, then restart", name, k.tokens.owner()))}
	default:
		return identity{name: name}
	}
}
