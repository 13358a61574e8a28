package notify

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// budget is how many restarts a namespace may have: a bucket that is full at
// first and gets one token back at a time.
type budget struct {
	namespace string
	most      float64
	every     time.Duration // for one token
	tokens    float64
	at        time.Time // when tokens was right
}

// budget finds the budget of a namespace.
func (r *Restarts) budget(namespace string) *budget {
	if b := r.budgets[namespace]; b != nil {
		return b
	}
	perHour := r.PerHour
	if perHour <= 0 {
		perHour = perHourDefault
	}
	if r.budgets == nil {
		r.budgets = map[string]*budget{}
	}
	b := &budget{namespace: namespace, most: float64(perHour), every: time.Hour / time.Duration(perHour), tokens: float64(perHour), at: time.Now()}
	r.budgets[namespace] = b
	return b
}

// budgetError says that a namespace has had its restarts.
type budgetError struct {
	namespace string
	perHour   int
	until     time.Time
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("the namespace %q has had its restarts (%d an hour); more wait until %s", e.namespace, e.perHour, e.until.Format(time.TimeOnly))
}

// take takes a token, or tells when there is one again.
func (b *budget) take(now time.Time) error {
	b.tokens = min(b.most, b.tokens+float64(now.Sub(b.at))/float64(b.every))
	b.at = now
	if b.tokens < 1 {
		missing := time.Duration((1 - b.tokens) * float64(b.every))
		return &budgetError{b.namespace, int(b.most), now.Add(missing + time.Millisecond)}
	}
	b.tokens--
	return nil
}

// giveBack undoes a take.
func (b *budget) giveBack() { b.tokens = min(b.most, b.tokens+1) }

// retryDelay grows with the failures so far, and is shortened by up to a
// quarter, so that what failed together does not come back together.
func retryDelay(failures int) time.Duration {
	delay := longestRetry
	if failures < 7 {
		delay = firstRetry << (failures - 1)
	}
	return delay - time.Duration(rand.Float64()*float64(delay)/4)
}
