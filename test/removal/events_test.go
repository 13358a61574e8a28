package removal

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// scripted is what is answered instead, by the first that answers.
func scripted(scripts ...script) func(*world) func() {
	return func(w *world) func() {
		w.server.says(both(scripts...))
		return func() { w.server.says(nil) }
	}
}

// variable is an answer to whatever is asked about the variable in question.
func variable(a answer) func(*world) func() { return scripted(about(a)) }

// everyData answers every question for values.
func everyData(a answer) script { return both(toAll(single, a), toAll(batch, a)) }

// allBut answers all but one kind.
func allBut(k kind, a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		if q.kind != k {
			a(w, r)
		}
		return q.kind != k
	}
}

// namesAll says that what is asked for is gone.
func namesAll(w http.ResponseWriter, r *http.Request, q question) bool {
	if q.data() {
		says(404, jsonT, gone(account, q.ids[0]))(w, r)
	}
	return q.data()
}

// moved is where a redirect leads: to Conjur's own words.
func moved(w http.ResponseWriter, r *http.Request, _ question) bool {
	there := r.URL.Path == "/moved"
	if there {
		says(404, jsonT, gone(account, lost))(w, r)
	}
	return there
}

// The numbers in texts.

func refuses(addr string) func(*world) func() {
	return func(w *world) func() {
		w.reaches(func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", addr) })
		return func() { w.reaches(nil) }
	}
}

func unknownHost(w *world) func() {
	w.reaches(func(context.Context) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host (404 not found)", Name: w.host, IsNotFound: true}
	})
	return func() { w.reaches(nil) }
}

// What happens in Conjur.

func deletes(w *world) func() {
	w.load(fmt.Sprintf("- !delete { record: !variable %q }\n", w.lost))
	return func() { w.define(w.lost) }
}

func denies(privileges string) func(*world) func() {
	return func(w *world) func() {
		w.load(privilege("!deny", privileges, w.lost))
		return func() { w.load(privilege("!permit", privileges, w.lost)) }
	}
}

func deniesAll(privileges string) func(*world) func() {
	return func(w *world) func() {
		w.load(privilege("!deny", privileges, w.ids()...))
		return func() { w.load(privilege("!permit", privileges, w.ids()...)) }
	}
}

// restoreAll makes anew what an empty policy has deleted.
func (w *world) restoreAll() {
	w.Helper()
	w.define(w.ids()...)
	w.renew(w.ids()...)
}

func emptiesPolicies(w *world) func() {
	for _, branch := range []string{"app", "other"} {
		w.server.policy(conjurd.Replace, branch, "[]\n")
	}
	return w.restoreAll
}

// emptiesRoot deletes the identity too, which tells it from those that lost
// everything; it comes back with another key.
func emptiesRoot(w *world) func() {
	before := w.server.backup()
	w.server.policy(conjurd.Replace, "root", "[]\n")
	return func() { w.server.restore(before) }
}

func deletesHost(w *world) func() {
	before := w.server.backup()
	w.server.policy(conjurd.Update, "hosts", "- !delete { record: !host web }\n")
	return func() { w.server.restore(before) }
}

// deletesHostAndAll is a server that answers from a cache who asks, and not
// what may be read.
func deletesHostAndAll(w *world) func() {
	over := deletesHost(w)
	w.server.says(both(namesAll, toAll(whoami, says(200, jsonT, `{"account":"dev","username":"host/hosts/web"}`))))
	return func() { w.server.says(nil); over() }
}

// rotatesKey has the key rotated for a while: the token lives on, and then no
// login works.
func rotatesKey(w *world) func() {
	w.server.ahead.Add(int64(time.Hour))
	w.server.says(toAll(login, bare(401)))
	return func() { w.server.says(nil) }
}

func expires(w *world) func() {
	w.server.ahead.Add(int64(time.Hour))
	return func() {}
}

func wrongCA(w *world) func() {
	ca, err := conjurd.NewCA()
	if err != nil {
		w.Fatal(err)
	}
	return impostor(w, ca, w.host)
}

// impostor has the server show another certificate, and say in Conjur's words
// that the variable is gone.
func impostor(w *world, ca *conjurd.CA, host string) func() {
	w.server.present(ca, host)
	w.server.says(about(says(404, jsonT, gone(account, lost))))
	w.client.Close()
	return func() {
		w.server.present(w.server.ca, w.host)
		w.server.says(nil)
		w.client.Close()
	}
}

func wrongName(w *world) func() {
	return impostor(w, w.server.ca, "another.test")
}

func emptyServer(w *world) func() {
	before := w.server.backup()
	w.server.restore(w.server.fresh())
	return func() { w.server.restore(before) }
}

// The backups: what is there now is restored when it is over.

// olderWithoutVariable restores the server to before the variable was made.
func olderWithoutVariable(w *world) func() {
	now := w.server.backup()
	deletes(w)
	older := w.server.backup()
	w.server.restore(older)
	return func() { w.server.restore(now) }
}

func olderWithoutMost(w *world) func() {
	now := w.server.backup()
	emptiesPolicies(w)
	w.define(kept)
	w.server.set(map[string]string{kept: w.values[kept]})
	older := w.server.backup()
	w.server.restore(older)
	return func() { w.server.restore(now) }
}

func olderWithoutHost(w *world) func() {
	now := w.server.backup()
	deletesHost(w)
	older := w.server.backup()
	w.server.restore(older)
	return func() { w.server.restore(now) }
}

// olderValue restores the server to before a rotation.
func olderValue(w *world) func() {
	older, value := w.server.backup(), w.values[w.lost]
	w.renew(w.lost)
	w.next()
	w.deliver()
	w.server.restore(older)
	w.values[w.lost] = value
	return func() {}
}

// everyOther says at every other look that the variable is gone.
func everyOther(w *world) func() {
	return scripted(func(rw http.ResponseWriter, r *http.Request, q question) bool {
		return w.looks.Load()%2 == 1 && about(says(404, jsonT, gone(account, lost)))(rw, r, q)
	})(w)
}

// changing knows us by another name each time.
func changing(w *world) func() {
	var n atomic.Int64
	return scripted(about(says(404, jsonT, gone(account, lost))), func(rw http.ResponseWriter, r *http.Request, q question) bool {
		if q.kind != whoami {
			return false
		}
		says(200, jsonT, `{"account":"dev","username":"host/`+string(rune('a'+n.Add(1)%26))+`"}`)(rw, r)
		return true
	})(w)
}
