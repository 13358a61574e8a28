package variables

import (
	"net/http"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

const (
	// manyBare500s is how many answers 500 without a body, and no good one
	// among them, are taken for a server in trouble rather than a variable.
	manyBare500s = 6
	// leastTrouble is for how long one such answer is enough after that.
	leastTrouble = time.Minute
)

// blameServer reports whether an answer says that the server failed: it does so
// for a value that it cannot decrypt, and for everything while its database is
// down. After a good answer in the same call it is the value.
func (k *call) blameServer(r conjur.Reading) bool { return r.Form == conjur.Failed && !k.anyGood }

// inTrouble reports, after such an answer about the variable, whether the server
// is in trouble, so that nothing else is worth asking for. A question that needs
// its database and no value decides, where this was not found out lately.
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
	r := k.conjur.Check(k.ctx, nil, id, execute)
	return r.Status != 0 && r.Status < http.StatusInternalServerError
}
