package witnesses

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// nobody is a Process without clients. It counts who asks for one.
type nobody struct {
	Process
	asked int
}

func (n *nobody) Client(string) *conjur.Client { n.asked++; return nil }

// TestBoundsOfRights: an answer about a permission counts for a minute, and one that stays
// unknown is so since the first question.
func TestBoundsOfRights(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			process := &nobody{}
			w := New(Config{Process: process})
			all, begin := []access{{"app", "apps/db"}, {"app", "apps/db"}}, time.Now()
			w.askRights(t.Context(), all)
			time.Sleep(time.Minute + less)
			w.askRights(t.Context(), all)
			if (process.asked == 2) != (less >= 0) {
				t.Errorf("after the bound%+d there were %d questions", less, process.asked)
			}
			if right := w.right(all[0]); right.may || right.known || right.since != begin {
				t.Errorf("without an answer: %+v", right)
			}
		})
	}
}
