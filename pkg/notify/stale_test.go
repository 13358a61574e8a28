package notify_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// A workload that somebody else writes between look and restart is compared again.
func TestAWorkloadThatChangedIsComparedAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		others int    // how often somebody else writes before our write
		noted  string // what that writes as the revision
		writes []string
	}{
		{"another leader restarted it", 1, "2", nil},
		{"its status changed", 2, "", []string{"shop/deployment/web db=2"}},
		{"it changes four times", 4, "", []string{"shop/deployment/web db=2"}},
		{"it changes five times", 5, "", []string{"shop/deployment/web db=2"}},
		{"it changes without end for a while", 7, "", []string{"shop/deployment/web db=2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(web)
				time.Sleep(time.Minute)
				c.revise("shop", "db")
				c.revise("shop", "db")
				others := 0
				c.during = func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					if c.calls%3 != 0 || others == test.others { // neither before Annotate nor once all have written
						return
					}
					others++
					changed := targets.PodTemplate{Version: fmt.Sprint(others), Created: c.templates[web].Created, Annotations: map[string]string{}}
					if test.noted != "" {
						changed.Annotations["conjur.org/secret-revision.db"] = test.noted
					}
					c.templates[web] = changed
				}
				r, seen, end := restarting(t, c, 0)
				r.Check("shop", "db", use)
				time.Sleep(time.Hour)
				end()
				c.assertWrites(t, test.writes...)
				if len(seen.restarts) != len(test.writes) {
					t.Errorf("told of %v, want as many as there are writes", seen.restarts)
				}
				if failed := test.others >= 5; failed != (len(seen.reports) == 1 && strings.Contains(seen.reports[0], "others changed it")) {
					t.Errorf("reported %q", seen.reports)
				}
			})
		})
	}
}
