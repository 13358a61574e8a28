package variables

import (
	"net/http"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

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
