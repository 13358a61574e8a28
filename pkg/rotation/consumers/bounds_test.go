package consumers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// inTime runs a test at a bound of time - 1, at it, and after it.
func inTime(t *testing.T, config Config, test func(t *testing.T, c *Consumers, less time.Duration)) {
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			config.Set, config.Now = "apps/db", time.Now
			c, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			test(t, c, less)
		})
	}
}

// TestBoundsOfWait: files follow within the wait, and Pods that nobody asks within three
// minutes.
func TestBoundsOfWait(t *testing.T) {
	v := versions.Version{ID: "r1", Step: 9}
	secrets := []rotation.Shown{{Namespace: "shop", Name: "db", Step: 9}}
	introduced := func(t *testing.T, c *Consumers) bool {
		return c.answer(t.Context(), versions.New("us"), v, secrets, false, "", func(Holding) bool { return true }).Open
	}
	inTime(t, Config{Wait: time.Minute}, func(t *testing.T, c *Consumers, less time.Duration) {
		if introduced(t, c) {
			t.Error("open at once")
		}
		time.Sleep(time.Minute + less)
		if open := introduced(t, c); open != (less >= 0) {
			t.Errorf("after the wait%+d: open %t", less, open)
		}
	})
	inTime(t, Config{Ask: []string{"http://127.0.0.1/keys"}, Again: time.Hour}, func(t *testing.T, c *Consumers, less time.Duration) {
		for _, wait := range []time.Duration{0, 3*time.Minute + less} {
			time.Sleep(wait)
			c.last = snapshot{at: time.Now(), unasked: []string{"shop/job-x"}}
			if open := introduced(t, c); open != (wait >= 3*time.Minute) {
				t.Errorf("after %v: open %t", wait, open)
			}
		}
	})
}

// TestBoundsOfUse: an old key goes when nobody has used it for so long, of which no more
// than two minutes at a time were unseen.
func TestBoundsOfUse(t *testing.T) {
	v := versions.Version{ID: "r1"}
	inTime(t, Config{Unused: 3 * time.Minute}, func(t *testing.T, c *Consumers, less time.Duration) {
		idle := func(after time.Duration) rotation.Answer {
			time.Sleep(after)
			c.last.at = time.Now()
			return c.idle(v)
		}
		begin := time.Now()
		if a := idle(0); a.Open || a.Until != begin.Add(time.Minute) {
			t.Errorf("at once: %+v", a)
		}
		idle(time.Minute)
		idle(2*time.Minute - 1)
		if a := idle(1 + less); a.Open != (less >= 0) {
			t.Errorf("the bound%+d without a use: %+v", less, a)
		}
	})
	inTime(t, Config{Unused: 3 * time.Minute}, func(t *testing.T, c *Consumers, less time.Duration) {
		begin := time.Now()
		c.last.at = begin
		c.idle(v)
		time.Sleep(2*time.Minute + less)
		c.last.at = time.Now()
		if c.idle(v); c.unused[v.ID].since.Equal(begin) != (less <= 0) {
			t.Errorf("a gap of the bound%+d counts: %t", less, less > 0)
		}
	})
}

// TestBoundsOfASnapshot: versions that are checked within a tenth of the time between two
// looks share one, unless it is from before their stage.
func TestBoundsOfASnapshot(t *testing.T) {
	inTime(t, Config{Again: 10 * time.Second}, func(t *testing.T, c *Consumers, less time.Duration) {
		first := c.takeSnapshot(t.Context(), time.Time{}, nil).at
		if at := c.takeSnapshot(t.Context(), first.Add(less), nil).at; !at.Equal(first) {
			t.Errorf("another time at the same moment: %v", at.Sub(first))
		}
		time.Sleep(time.Second + less)
		if shared := c.takeSnapshot(t.Context(), time.Time{}, nil).at.Equal(first); shared != (less < 0) {
			t.Errorf("after the bound%+d it is shared: %t", less, shared)
		}
	})
	inTime(t, Config{Again: 10 * time.Second}, func(t *testing.T, c *Consumers, less time.Duration) {
		first := c.takeSnapshot(t.Context(), time.Time{}, nil).at
		time.Sleep(time.Millisecond)
		if shared := c.takeSnapshot(t.Context(), first.Add(less), nil).at.Equal(first); shared != (less <= 0) {
			t.Errorf("for a stage that begins at it%+d it is shared: %t", less, shared)
		}
	})
}

// TestBoundsOfSteps: a Secret has reached a step, and a Pod a revision.
func TestBoundsOfSteps(t *testing.T) {
	changed := time.Now()
	all := revisions{"notes": notify.Revision{Number: 5, At: changed}}
	for less := -1; less <= 1; less++ {
		if names := behind([]rotation.Shown{{Step: uint64(9 + less)}}, 9); (len(names) == 0) != (less >= 0) {
			t.Errorf("the step%+d is behind: %q", less, names)
		}
		for later := -1; later <= 1; later++ {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Annotations:       map[string]string{"notes": strconv.Itoa(5 + less)},
				CreationTimestamp: metav1.NewTime(changed.Add(time.Duration(later) * time.Second)),
			}}
			if before := all.before(pod); before != (less < 0 && later <= 0) {
				t.Errorf("a Pod of the revision%+d that began %+d s after it is from before: %t", less, later, before)
			}
		}
	}
}

// TestBoundsOfAnswers: how long an answer is, and how many consumers are asked at a time.
func TestBoundsOfAnswers(t *testing.T) {
	text := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer server.Close()
	for less := -1; less <= 1; less++ {
		c, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		const holding = `{"primary":"r1"}`
		text = strings.Repeat(" ", 64<<10+less-len(holding)) + holding
		if h, err := c.ask(t.Context(), server.URL); (err == nil && h.Primary == "r1") != (less <= 0) {
			t.Errorf("an answer of the bound%+d: %v", less, err)
		}
		synctest.Test(t, func(t *testing.T) {
			calls := make([]func(), 32+less)
			for i := range calls {
				calls[i] = func() { time.Sleep(time.Second) }
			}
			begin := time.Now()
			all(calls)
			if took := time.Since(begin); took != time.Duration(1+max(less, 0))*time.Second {
				t.Errorf("%d calls take %v", len(calls), took)
			}
		})
	}
}
