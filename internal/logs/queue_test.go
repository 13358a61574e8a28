package logs

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gatedWriter writes only when it is let.
type gatedWriter struct {
	lines chan string
}

func (g gatedWriter) Write(line []byte) (int, error) {
	g.lines <- string(line)
	return len(line), nil
}

func TestTheLogIsBoundedAndCountsWhatItDrops(t *testing.T) {
	out := gatedWriter{make(chan string)}
	q := NewQueue(out)
	log, _, err := New("text", q)
	if err != nil {
		t.Fatal(err)
	}
	stop := q.Start()
	const lines, long = 2000, 1000
	for range lines {
		log.Info(strings.Repeat("x", long))
	}
	dropped := int(q.dropped.Load())
	if most := lines - mostQueued/long; dropped < most-10 {
		t.Errorf("%d lines of %d were dropped, want %d at least", dropped, lines, most)
	}
	written, notice := 0, ""
	for notice == "" {
		line := <-out.lines
		if strings.Contains(line, "dropped") {
			notice = line
		} else {
			written++
		}
	}
	if written+dropped != lines || !strings.Contains(notice, "WARN") {
		t.Errorf("%d written and %d dropped are not %d; %s", written, dropped, lines, notice)
	}
	ended := make(chan struct{})
	log.Info("last")
	go func() {
		defer close(ended)
		stop()
	}()
	if line := <-out.lines; !strings.Contains(line, "last") {
		t.Errorf("the end of the log is %q", line)
	}
	<-ended
}

func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	q := NewQueue(brokenWriter{})
	stop := q.Start()
	for range 3 {
		_, _ = q.Write([]byte("line\n"))
	}
	stop()
	if n := q.dropped.Load(); n < 3 {
		t.Errorf("%d lines are counted as dropped, want 3", n)
	}
}

// brokenWriter is a log that nobody reads any more.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBoundsOfQueuedLines(t *testing.T) {
	for _, c := range []struct{ long, lines, dropped int }{
		{mostQueued - 1, 1, 0}, {mostQueued, 1, 0}, {mostQueued + 1, 1, 1},
		{1, mostLines - 1, 0}, {1, mostLines, 0}, {1, mostLines + 1, 1},
	} {
		q := NewQueue(io.Discard)
		for range c.lines {
			_, _ = q.Write(make([]byte, c.long))
		}
		if n := int(q.dropped.Load()); n != c.dropped {
			t.Errorf("of %d lines of %d bytes, %d are dropped, want %d", c.lines, c.long, n, c.dropped)
		}
		_, _ = q.Write(nil) // what was dropped takes no room
		if n := int(q.dropped.Load()); c.lines == 1 && n != c.dropped {
			t.Errorf("after a line of %d bytes, an empty one is dropped", c.long)
		}
	}
}

func TestTheEndOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		q := NewQueue(&out)
		_, _ = q.Write(make([]byte, mostQueued+1)) // is dropped, and nobody has a logger yet
		stop := q.Start()
		for range 3 { // each fits, because the ones before are written
			_, _ = q.Write([]byte(strings.Repeat("x", mostQueued)))
			synctest.Wait()
		}
		for range 3 {
			_, _ = q.Write([]byte("x"))
		}
		began := time.Now()
		stop()
		if n, want := out.Len(), 3*mostQueued+3; n != want || time.Since(began) > 0 || q.dropped.Load() != 1 {
			t.Errorf("%d bytes are written at the end, want %d; %d lines are dropped; it took %v", n, want, q.dropped.Load(), time.Since(began))
		}
	})
}
