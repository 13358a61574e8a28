package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/length"
)

// writes matches the calls that change Secrets.
func writes(c kubetest.Call) bool {
	return c.Resource == "secrets" && (c.Verb == "patch" || c.Verb == "update" || c.Verb == "create" || c.Verb == "delete")
}

// notWatches matches the calls that are neither watches nor about the Lease.
func notWatches(c kubetest.Call) bool { return c.Verb != "watch" && c.Resource != "leases" }

// polls waits until the process has asked Conjur n times more for changes.
func (w *world) polls(n int64) {
	w.Helper()
	before := w.Server.Counts().Data
	eventually(w, fmt.Sprintf("%d more polls", n), func() bool { return w.Server.Counts().Data >= before+n })
}

var secretsEach = length.Flag("secrets", 667, 100, "how many Secrets there are in each of three namespaces")

func TestTwoThousandSecrets(t *testing.T) {
	t.Parallel()
	const namespaces, sharers = 3, 50
	each := secretsEach()
	w := newWorld(t)
	spaces := []string{w.namespace}
	for len(spaces) < namespaces {
		spaces = append(spaces, w.join())
	}
	w.Env["NAMESPACE_ALLOWLIST"] = fmt.Sprintf("%s,%s,%s", spaces[0], spaces[1], spaces[2])
	var ids []string
	for i := range namespaces * each {
		ids = append(ids, fmt.Sprintf("app/var%04d", i))
	}
	w.Variables(append(ids, "shared")...)
	requests := int64(1 + len(ids)/250) // of one interval, at least
	for i, id := range ids {
		conjurMap := map[string]string{"value": id}
		if i%(len(ids)/sharers) == 0 && i/(len(ids)/sharers) < sharers {
			conjurMap["shared"] = "shared"
		}
		w.secretIn(spaces[i%namespaces], fmt.Sprintf("s%04d", i), conjurMap)
	}

	p := w.start()
	w.awaitAll(spaces, func(data map[string][]byte, name string) bool {
		var i int
		_, _ = fmt.Sscanf(name, "s%d", &i)
		return string(data["value"]) == w.Value[ids[i]]
	})

	begin := time.Now()
	w.Renew("shared")
	w.awaitAll(spaces, func(data map[string][]byte, _ string) bool {
		shared, ok := data["shared"]
		return !ok || string(shared) == w.Value["shared"]
	})
	w.polls(2 * requests)
	mine := func(since time.Time, match ...func(kubetest.Call) bool) []kubetest.Call {
		return plane.Calls(t, append(match, kubetest.ByUser(w.user()), kubetest.Since(since))...)
	}
	if calls := mine(begin, writes); len(calls) != sharers {
		t.Errorf("one value that %d Secrets share has changed: %d writes", sharers, len(calls))
	}

	begin = time.Now()
	w.polls(10 * requests)
	if calls := mine(begin, notWatches); len(calls) > 5 {
		t.Errorf("nothing has changed: %d requests to the API server, the first of them %+v", len(calls), calls[0])
	}

	p.Stop()
	begin = time.Now()
	p = w.start()
	eventually(t, "all Secrets looked at again", func() bool { return w.ready() })
	if calls := mine(begin, writes); len(calls) > 0 {
		t.Errorf("a restart: %d writes, the first of them %+v", len(calls), calls[0])
	}
	p.Stop()
}
