package notify

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// budget returns the budget of a namespace, which is full at first.
func (r *Restarts) budget(namespace string) *rate.Limiter {
	r.mu.Lock()
	perHour := r.PerHour
	r.mu.Unlock()
	if perHour <= 0 {
		perHour = perHourDefault
	}
	every := rate.Every(time.Hour / time.Duration(perHour))
	b := r.budgets[namespace]
	switch {
	case b == nil:
		b = rate.NewLimiter(every, perHour)
		if r.budgets == nil {
			r.budgets = map[string]*rate.Limiter{}
		}
		r.budgets[namespace] = b
	case b.Burst() != perHour:
		b.SetLimit(every)
		b.SetBurst(perHour)
	}
	return b
}

// budgetError means that a namespace has used up its restarts.
type budgetError struct {
	namespace string
	perHour   int
	until     time.Time
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("the namespace %q has used its restarts (%d an hour); more wait until %s", e.namespace, e.perHour, e.until.Format(time.TimeOnly))
}
