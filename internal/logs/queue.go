package logs

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// mostQueued bounds the bytes of unread log lines, and mostLines their number.
	mostQueued = 512 << 10
	mostLines  = 1024
	// lastWords is how long the end of the process waits for the reader.
	lastWords = time.Second
)

// Queue writes lines in the background, so that a log without a reader does not
// block the process. Lines that do not fit are dropped and counted. Create it with
// NewQueue.
type Queue struct {
	out   io.Writer
	lines chan []byte
	stop  chan struct{} // closed to request the end, after the queued lines
	done  chan struct{} // closed at the end

	size    atomic.Int64               // of the queued lines
	dropped atomic.Int64               // lines since the start
	logger  atomic.Pointer[zap.Logger] // writes to this queue; reports dropped lines
}

// NewQueue returns a queue that writes nothing until it is started.
func NewQueue(out io.Writer) *Queue {
	q := &Queue{out: out, lines: make(chan []byte, mostLines), stop: make(chan struct{}), done: make(chan struct{})}
	q.logger.Store(zap.NewNop())
	return q
}

// Start writes until the caller calls stop. stop waits a limited time for queued
// lines, because a writer may be stuck. Such a writer ends with the process.
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

// Write queues one line. It never blocks and never fails.
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

// Sync does nothing, because the queue writes its lines without it.
func (q *Queue) Sync() error { return nil }

// run writes the lines. After a successful write it reports dropped lines.
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
			q.logger.Load().Warn("Log lines were dropped, because standard error was read too slowly", zap.Int64("sinceStart", n))
		}
	}
}

// next waits for a line. After the queue was stopped, it returns only queued lines.
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
