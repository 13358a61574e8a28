package removal

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// An answer replaces the answer of the server.
type answer = http.HandlerFunc

const (
	html  = "text/html"
	text  = "text/plain"
	jsonT = "application/json; charset=utf-8"
	page  = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>403 Forbidden</body></html>\n"
)

// lost is the placeholder, in the bodies of answers, for the id of the variable in question.
const lost = "{lost}"

// says is an answer with a status and a body.
func says(status int, contentType, body string, header ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		id, _ := r.Context().Value(lostKey{}).(string)
		_, _ = fmt.Fprint(w, strings.ReplaceAll(body, lost, id))
	}
}

func bare(status int) answer { return says(status, html, "") }

// gone is the body with which Conjur reports that a variable has no value.
func gone(account, id string) string {
	return fmt.Sprintf(`{"error":{"code":"not_found","message":"CONJ00076E Variable %s:variable:%s is empty or not found."}}`, account, id)
}

// hangUp sends the text unchanged and closes the connection.
func hangUp(text string) answer { return leave(text, -1) }

// reset sends the text and closes the connection by RST, so that the client may lose the
// text.
func reset(text string) answer { return leave(text, 0) }

func leave(text string, linger int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		id, _ := r.Context().Value(lostKey{}).(string)
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = buf.WriteString(strings.ReplaceAll(text, lost, id))
		_ = buf.Flush()
		if plain, ok := conn.(*tls.Conn); ok && linger >= 0 {
			_ = plain.NetConn().(*net.TCPConn).SetLinger(linger)
			_ = plain.NetConn().Close()
			return
		}
		_ = conn.Close()
	}
}

// silent sends the text, and then nothing until the client gives up.
func silent(begin string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonT)
		if begin != "" {
			w.Header().Set("Content-Length", "400")
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// everywhere answers every request.
func everywhere(a answer) script {
	return func(w http.ResponseWriter, r *http.Request, _ question) bool { a(w, r); return true }
}

// toAll answers questions of one kind.
func toAll(k kind, a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		if q.kind == k {
			a(w, r)
		}
		return q.kind == k
	}
}

// about answers requests about the variable in question, alone or in a batch.
func about(a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		mine := q.data() && q.lost
		if mine {
			a(w, r)
		}
		return mine
	}
}

// toChecks answers each check of a privilege, on any variable.
func toChecks(a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		if q.privilege != "" {
			a(w, r)
		}
		return q.privilege != ""
	}
}

// aboutCheck answers the check of a privilege on the variable in question. With "", it
// answers requests for the resource itself.
func aboutCheck(privilege string, a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		mine := q.kind == check && q.lost && q.privilege == privilege
		if mine {
			a(w, r)
		}
		return mine
	}
}

// gateway refuses values with 403 and everything else with 404, both without a body.
func gateway(w http.ResponseWriter, r *http.Request) {
	if ask(r).data() {
		bare(403)(w, r)
	} else {
		bare(404)(w, r)
	}
}

// both returns a script that uses the first of the scripts that answers.
func both(scripts ...script) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		for _, f := range scripts {
			if f(w, r, q) {
				return true
			}
		}
		return false
	}
}
