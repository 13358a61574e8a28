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

// scripted makes the server use the first script that answers.
func scripted(scripts ...script) func(*world) func() {
	return func(w *world) func() {
		w.server.says(both(scripts...))
		return func() { w.server.says(nil) }
	}
}

// variable gives this answer to every request about the variable in question.
func variable(a answer) func(*world) func() { return scripted(about(a)) }

// everyData answers every request for values.
func everyData(a answer) script { return both(toAll(single, a), toAll(batch, a)) }

// allBut answers every request except those of one kind.
func allBut(k kind, a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		if q.kind != k {
			a(w, r)
		}
		return q.kind != k
	}
}

// namesAll reports every requested variable as gone.
func namesAll(w http.ResponseWriter, r *http.Request, q question) bool {
	if q.data() {
		says(404, jsonT, gone(account, q.ids[0]))(w, r)
	}
	return q.data()
}

// moved is the target of a redirect, which answers in Conjur's form.
func moved(w http.ResponseWriter, r *http.Request, _ question) bool {
	there := r.URL.Path == "/moved"
	if there {
		says(404, jsonT, gone(account, lost))(w, r)
	}
	return there
}

// Events with numbers such as 404 in texts.

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

// Events in Conjur itself.

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

// restoreAll declares everything again that an empty policy has deleted.
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

// emptiesRoot also deletes the identity, unlike the events that delete only variables. The
// identity returns with another key.
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

// deletesHostAndAll simulates a server that answers whoami from a cache, but not requests
// for permissions.
func deletesHostAndAll(w *world) func() {
	over := deletesHost(w)
	w.server.says(both(namesAll, toAll(whoami, says(200, jsonT, `{"account":"dev","username":"host/hosts/web"}`))))
	return func() { w.server.says(nil); over() }
}

// rotatesKey rotates the API key for a while: the token stays valid, but no login succeeds.
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

// impostor shows another certificate, and reports in Conjur's form that the variable is
// gone.
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

// Events with backups. After the event, the present data are restored.

// olderWithoutVariable restores a backup from before the declaration of the variable.
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

// olderValue restores a backup from before a rotation.
func olderValue(w *world) func() {
	older, value := w.server.backup(), w.values[w.lost]
	w.renew(w.lost)
	w.next()
	w.deliver()
	w.server.restore(older)
	w.values[w.lost] = value
	return func() {}
}

// everyOther reports the variable as gone in every second answer.
func everyOther(w *world) func() {
	return scripted(func(rw http.ResponseWriter, r *http.Request, q question) bool {
		return w.looks.Load()%2 == 1 && about(says(404, jsonT, gone(account, lost)))(rw, r, q)
	})(w)
}

// changing answers whoami with another name each time.
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
