package kubetest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// logged is an audit log to which a test appends.
func logged(t *testing.T, text string) *auditLog {
	t.Helper()
	l := &auditLog{path: filepath.Join(t.TempDir(), "audit.log")}
	l.append(t, text)
	return l
}

func (l *auditLog) append(t *testing.T, text string) {
	t.Helper()
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// codes are those of the calls, by URI.
func (l *auditLog) codes(t *testing.T) map[string]int {
	t.Helper()
	calls, open, err := l.calls(0)
	if err := errors.Join(open, err); err != nil {
		t.Fatal(err)
	}
	codes := map[string]int{}
	for _, c := range calls {
		codes[c.URI] = c.Code
	}
	return codes
}

const (
	received  = `{"auditID":"1","requestURI":"/a","verb":"get"}` + "\n"
	completed = `{"auditID":"1","requestURI":"/a","verb":"get","responseStatus":{"code":200}}` + "\n"
	another   = `{"auditID":"2","requestURI":"/b","verb":"get","responseStatus":{"code":401}}` + "\n"
)

func TestCallIsPendingUntilItsLastLine(t *testing.T) {
	l := logged(t, received+another)
	if calls, open, err := l.calls(0); open == nil || !strings.Contains(open.Error(), "/a") || err != nil {
		t.Errorf("%v, %v, %v; want the open call named", calls, open, err)
	}
	half := len(completed) / 2
	l.append(t, completed[:half])
	if calls, open, err := l.calls(0); open == nil || err != nil {
		t.Errorf("%v, %v, %v; want an open call while its line is not whole", calls, open, err)
	}
	l.append(t, completed[half:])
	if got := l.codes(t); len(got) != 2 || got["/a"] != 200 || got["/b"] != 401 {
		t.Error(got)
	}
}

// Where there is always another call, none but the first are waited for.
func TestALaterCallIsNotWaitedFor(t *testing.T) {
	l := logged(t, another+received)
	if calls, open, err := l.calls(1); len(calls) != 1 || open != nil || err != nil {
		t.Errorf("%v, %v, %v; want the first call", calls, open, err)
	}
	if _, open, _ := l.calls(2); open == nil {
		t.Error("the second call is open, and is not waited for")
	}
}

func TestPausedServerAnswersNothing(t *testing.T) {
	l := logged(t, received)
	l.pause(true)
	if got := l.codes(t); len(got) != 1 || got["/a"] != 0 {
		t.Error(got)
	}
	l.pause(false)
	if _, open, _ := l.calls(0); open == nil {
		t.Error("no open call, though it can be answered again")
	}
}

func TestKilledServerAnswersNothing(t *testing.T) {
	l := logged(t, received+another[:10])
	if err := l.abandon(); err != nil {
		t.Fatal(err)
	}
	l.append(t, another)
	if got := l.codes(t); len(got) != 2 || got["/a"] != 0 || got["/b"] != 401 {
		t.Error(got)
	}
}

func TestLogWithARottenLine(t *testing.T) {
	l := logged(t, another+"{]\n")
	if _, _, err := l.calls(0); err == nil || !strings.Contains(err.Error(), l.path) {
		t.Errorf("%v; want an error with the file", err)
	}
}

// Two readers begin at the same place; whoever comes later has read more, or
// less.
func TestReadersShareTheLog(t *testing.T) {
	l := logged(t, another+completed)
	for _, added := range []string{another, another + completed, another} {
		if err := l.take(0, []byte(added)); err != nil {
			t.Fatal(err)
		}
	}
	calls, _, err := l.calls(0)
	if err != nil || len(calls) != 2 || calls[0].URI != "/b" || calls[1].URI != "/a" || l.offset != int64(len(another+completed)) {
		t.Errorf("%+v, %v, offset %d; want each line once", calls, err, l.offset)
	}
}

func TestReadersAtOnce(t *testing.T) {
	l := logged(t, "")
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 100 {
				if err := l.read(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		l.append(t, another)
	}
	readers.Wait()
	if got := l.codes(t); len(got) != 1 || l.offset != int64(100*len(another)) {
		t.Errorf("%v, offset %d", got, l.offset)
	}
}
