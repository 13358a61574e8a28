package variables_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/test/length"
)

var mostBad = length.Flag("most-bad", 20_000, 5_000, "how many bad variables there are in the largest case")

// Whatever the number of variables that are not there, what was found before is
// polled and fetched as if there were none, and what was never found is found
// soon. The server names one culprit at most.
func TestManyBadVariablesDelayNoneThatIsThere(t *testing.T) {
	ways := map[string]func(*conjurtest.Double, string){
		"never made": func(*conjurtest.Double, string) {},
		"never set":  func(d *conjurtest.Double, id string) { d.Change(id, func(v *conjurtest.Variable) { v.Missing = true }) },
		"invisible": func(d *conjurtest.Double, id string) {
			d.Change(id, func(v *conjurtest.Variable) { v.Invisible = true })
		},
		"forbidden": func(d *conjurtest.Double, id string) {
			d.Change(id, func(v *conjurtest.Variable) { v.Forbidden = true })
		},
	}
	for name, spoil := range ways {
		for _, many := range []int{1000, mostBad()} {
			if many > 1000 && name != "never made" {
				continue // takes long, and is no other case
			}
			t.Run(fmt.Sprintf("%s %d", name, many), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, good, all := conjurtest.New(), conjurtest.Names(50), []string(nil)
					d.Fill(good)
					for i := range many {
						all = append(all, fmt.Sprintf("app/v%04d/bad%d", i%50, i)) // each good one has bad neighbours
						spoil(d, all[i])
					}
					all = append(all, good...)
					c := serve(t, d, func(c *setup) { c.RateLimit = 50 })
					for _, a := range c.Fetch(t.Context(), good) { // its own target was delivered
						if a.Verdict != variables.Found {
							t.Fatal(a.Err)
						}
					}
					for round := range 6 {
						time.Sleep(5 * time.Second)
						id, began := good[round], time.Now()
						d.Set(id, fmt.Sprintf("round %d", round))
						c.Fetch(t.Context(), all[100*round:100*round+100]) // a retry of bad targets
						poll := 0
						for ; poll < 2; poll++ {
							if changed, _ := c.Changed(t.Context(), all); len(changed) == 1 && changed[0] == id {
								break
							}
						}
						if poll > 0 {
							t.Fatalf("round %d: the change was not seen by the first poll", round)
						}
						both := append(all[50*round:50*round+50:50*round+50], id) // a share of bad ones and a good one
						wantFound(t, c.Fetch(t.Context(), both)[id], fmt.Sprintf("round %d", round))
						if took := time.Since(began); took > 4*time.Second {
							t.Errorf("round %d: took %v of waiting for the rate limit", round, took)
						}
					}
				})
			})
		}
	}
}

// A process that starts among many bad variables finds the good ones within a
// few polls or fetches.
func TestGoodVariablesAreFoundAmongManyThatAreNot(t *testing.T) {
	for _, many := range []int{1000, mostBad()} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, good, all := conjurtest.New(), conjurtest.Names(50), []string(nil)
				d.Fill(good)
				for i := range many {
					all = append(all, fmt.Sprintf("app/v%04d/bad%d", i%50, i))
				}
				all = append(all, good...)
				c := serve(t, d, func(c *setup) { c.RateLimit = 50 })
				began := time.Now()
				for tries := 1; ; tries++ {
					missed := 0
					answers := c.Fetch(t.Context(), all) // one target with all of them
					for _, id := range good {
						if answers[id].Verdict != variables.Found {
							missed++
						}
					}
					if missed == 0 {
						t.Logf("found after %d fetches, %v and %d requests", tries, time.Since(began), len(d.Log()))
						return
					}
					if tries == 10 {
						t.Fatalf("%d of 50 were not found in %d fetches", missed, tries)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// An id that fits no request line is never sent: a server may not answer it at
// all, and all others would wait.
func TestAnIDThatFitsNoRequestIsNotSent(t *testing.T) {
	d, long := conjurtest.New(), strings.Repeat("a", 12<<10)
	d.Fill([]string{"app/a", long})
	c := start(t, d, nil)
	answers := c.Fetch(t.Context(), []string{"app/a", long})
	wantFound(t, answers["app/a"], "value of app/a")
	wantUnknown(t, answers[long])
	if _, err := c.Changed(t.Context(), []string{"app/a", long}); err == nil || len(err.Error()) > 1000 {
		t.Errorf("the poll says %.2000v", err)
	}
	for _, a := range d.Log() {
		if len(a.Target) > 8000 {
			t.Errorf("a request line of %d bytes", len(a.Target))
		}
	}
}
