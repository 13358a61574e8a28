package kubetest

import (
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/proctest"
)

// Call is a request that reached the API server, from its audit log.
type Call struct {
	User      string // see UserName; "system:anonymous" without credentials, "" when they were refused (401)
	UserAgent string
	// Verb is that of the API: get, list, watch, create, update, patch,
	// delete, deletecollection; the HTTP method in lower case for a path that
	// is no resource.
	Verb string
	// Group, Resource and so on are empty for a path that is no resource.
	Group, Resource, Subresource string
	Namespace, Name              string
	URI                          string    // path and query
	Code                         int       // HTTP status; 0: the API server was stopped or paused before it answered
	Time                         time.Time // of the request's arrival, to the microsecond
}

// Calls returns the calls so far for which all of match are true, in the order
// of their arrival. It contains each call whose answer has begun to arrive. Calls
// waits for the Code of a call that is being answered, but not for later calls. It
// leaves out the calls of the API server to itself and the polls for readiness. The
// calls by methods of ControlPlane are included, with UserAgent "kubetest".
func (cp *ControlPlane) Calls(t testing.TB, match ...func(Call) bool) []Call {
	t.Helper()
	var calls []Call
	proctest.EventuallyNoError(t, "the outcome of all calls in the audit log", func() error {
		all, open, err := cp.audit.calls(len(calls))
		if err != nil {
			t.Fatal(err)
		}
		calls = all
		return open
	})
	var matching []Call
next:
	for _, c := range calls {
		for _, is := range match {
			if !is(c) {
				continue next
			}
		}
		matching = append(matching, c)
	}
	return matching
}

// ByUser matches the calls of a user; UserName gives a service account's name.
func ByUser(name string) func(Call) bool {
	return func(c Call) bool { return c.User == name }
}

// ByUserAgent matches the calls whose user agent begins with prefix.
func ByUserAgent(prefix string) func(Call) bool {
	return func(c Call) bool { return strings.HasPrefix(c.UserAgent, prefix) }
}

// Since matches the calls that arrived at the time given or later.
func Since(start time.Time) func(Call) bool {
	start = start.Truncate(time.Microsecond) // as the log's times are
	return func(c Call) bool { return !c.Time.Before(start) }
}
