package logs

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// mostQueued bounds the bytes of the log that wait for its reader, and
	// mostLines the lines.
	mostQueued = 512 << 10
	mostLines  = 1024
	// lastWords is how long the end of the process waits for that reader.
	lastWords = time.Second
)

// Queue writes lines in the background, so that a log that nobody reads
// stops no work. What finds no room is dropped and counted. Make it with
// NewQueue.
type Queue struct {
	out   io.Writer
	lines chan []byte
	stop  chan struct{} // closed when what waits is to be written, and no more
	done  chan struct{} // closed when it was

	size    atomic.Int64               // of the lines that wait
	dropped atomic.Int64               // lines, since the start
	logger  atomic.Pointer[zap.Logger] // that writes here; it says that lines were dropped
}

// NewQueue returns a queue that writes nothing before it is started.
func NewQueue(out io.Writer) *Queue {
	q := &Queue{out: out, lines: make(chan []byte, mostLines), stop: make(chan struct{}), done: make(chan struct{})}
	q.logger.Store(zap.NewNop())
	return q
}

// Start writes until the function that it returns is called, which waits for
// what is left, though not for ever: a writer that is stuck ends with the
// process.
func (q *Queue) Start() (stop func()) {
	go q.run()
	return func() {
		close(q.stop)
		select {
		case <-q.done:
		case <-time.After(lastWords):
		}
	}
}

// Write takes one line; it never blocks or fails.
func (q *Queue) Write(line []byte) (int, error) {
	size := int64(len(line))
	if q.size.Add(size) > mostQueued || !q.offer(bytes.Clone(line)) {
		q.size.Add(-size)
		q.dropped.Add(1)
	}
	return len(line), nil
}

func (q *Queue) offer(line []byte) bool {
	select {
	case q.lines <- line:
		return true
	default:
		return false
	}
}

// Sync has nothing to do: lines are on their way.
func (q *Queue) Sync() error { return nil }

// run says that lines were dropped once one could be written again.
func (q *Queue) run() {
	defer close(q.done)
	noted := int64(0)
	for line, ok := q.next(); ok; line, ok = q.next() {
		_, err := q.out.Write(line)
		q.size.Add(-int64(len(line)))
		switch n := q.dropped.Load(); {
		case err != nil:
			q.dropped.Add(1)
		case n > noted:
			noted = n
			q.logger.Load().Warn("Log lines were dropped, as nobody read the log in time", zap.Int64("sinceStart", n))
		}
	}
}

// next waits for a line; when the queue has been stopped it takes only what is
// there.
func (q *Queue) next() (line []byte, ok bool) {
	select {
	case line = <-q.lines:
		return line, true
	case <-q.stop:
	}
	select {
	case line = <-q.lines:
		return line, true
	default:
		return nil, false
	}
}
