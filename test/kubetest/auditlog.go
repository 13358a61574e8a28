package kubetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// auditLog reads the API server's audit log as it grows. A call has up to
// three lines, one for each stage, tied together by an ID.
type auditLog struct {
	path string

	mu      sync.Mutex
	offset  int64          // up to here the file has been taken in
	all     []Call         // in the order of arrival
	index   map[string]int // by ID, in all
	pending map[string]bool
	paused  bool // no outcome can come
}

// auditEvent is the part that matters of audit.k8s.io/v1 Event.
type auditEvent struct {
	AuditID    string
	RequestURI string
	Verb       string
	UserAgent  string
	User       struct{ Username string }
	ObjectRef  struct{ APIGroup, Resource, Subresource, Namespace, Name string }

	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// calls returns the first calls, n of them, or all so far where n is 0. The
// first error says that the outcome of one of these is still to come, the second
// that the log cannot be read.
func (l *auditLog) calls(n int) (first []Call, open, err error) {
	if err := l.read(); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == 0 {
		n = len(l.all)
	}
	for id := range l.pending {
		if i := l.index[id]; i < n && !l.paused {
			c := l.all[i]
			open = fmt.Errorf("a call is not answered yet: %s %s by %s", c.Verb, c.URI, c.User)
			break
		}
	}
	return slices.Clone(l.all[:n]), open, nil
}

// pause says whether calls should do without outcomes.
func (l *auditLog) pause(paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = paused
}

// abandon is for when the API server was killed: what is not answered never
// will be, and a line that it did not finish is passed over.
func (l *auditLog) abandon() error {
	if err := l.read(); err != nil {
		return err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offset = info.Size()
	clear(l.pending)
	l.paused = false
	return nil
}

// read takes in what has been added.
func (l *auditLog) read() error {
	l.mu.Lock()
	start := l.offset
	l.mu.Unlock()
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	added, err := io.ReadAll(io.NewSectionReader(f, start, 1<<40))
	if err != nil {
		return err
	}
	return l.take(start, added)
}

// take takes in the whole lines of what was added at start, save those that
// another reader has taken in meanwhile.
func (l *auditLog) take(start int64, added []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	added = added[min(l.offset-start, int64(len(added))):]
	for {
		line, rest, whole := bytes.Cut(added, []byte("\n"))
		if !whole {
			return nil
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s, offset %d: %w", l.path, l.offset, err)
		}
		l.addLocked(e)
		l.offset += int64(len(line)) + 1
		added = rest
	}
}

// addLocked takes in one line. A later one of the same call says all that the
// earlier one said, and more.
func (l *auditLog) addLocked(e auditEvent) {
	if l.index == nil {
		l.index, l.pending = map[string]int{}, map[string]bool{}
	}
	i, known := l.index[e.AuditID]
	if !known {
		i = len(l.all)
		l.index[e.AuditID] = i
		l.all = append(l.all, Call{})
	}
	l.all[i] = e.call()
	if l.all[i].Code == 0 {
		l.pending[e.AuditID] = true
	} else {
		delete(l.pending, e.AuditID)
	}
}

func (e auditEvent) call() Call {
	return Call{
		User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		URI: e.RequestURI, Code: e.ResponseStatus.Code, Time: e.RequestReceivedTimestamp,
	}
}
