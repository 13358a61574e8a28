package conjur

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// manyBare500s is how many answers 500 without a body, and no good one
	// among them, are taken for a server in trouble rather than a variable.
	manyBare500s = 6
	// leastTrouble is for how long one such answer is enough after that.
	leastTrouble = time.Minute
)

// isBare500 reports whether an answer of that status and length says that the
// server failed: it does so for a value that it cannot decrypt, and for
// everything while its database is down. After a good answer in the same call
// it is the value.
func (k *call) isBare500(status, length int) bool {
	return status == http.StatusInternalServerError && length == 0 && !k.anyGood
}

// inTrouble reports, after such an answer about the variable, whether the server
// is in trouble, so that nothing else is worth asking for. A question that needs
// its database and no value decides, where this was not found out lately.
func (k *call) inTrouble(id string) bool {
	if k.bare500s == 0 && (k.trouble.on() || !k.answersCheck(id)) {
		k.bare500s = manyBare500s
	}
	k.bare500s++
	if k.bare500s < manyBare500s {
		return false
	}
	if !k.trouble.on() {
		k.trouble.begin(leastTrouble)
	}
	return true
}

func (k *call) answersCheck(id string) bool {
	req, err := k.checkRequest(id, execute)
	if err != nil {
		return false
	}
	r, err := k.ask(k.ctx, KindCheck, fmt.Sprintf("%q", id), req)
	return err == nil && r.status < http.StatusInternalServerError
}
