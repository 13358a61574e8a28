package main

import (
	"fmt"
	"net/http"
)

// answer is a status with a body of a content type, and headers as pairs.
func answer(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(status)
		_, _ = fmt.Fprint(rw, body)
	}
}

const (
	asHTML = "text/html; charset=utf-8"
	asJSON = "application/json; charset=utf-8"
	page   = "<!DOCTYPE html>\n<html><head><title>Something went wrong</title></head><body>404 403</body></html>\n"
)

// conjur00076 is Conjur's own answer about a variable that is not there.
func conjur00076(account, id string) http.HandlerFunc {
	return answer(404, asJSON, fmt.Sprintf(
		`{"error":{"code":"not_found","message":"CONJ00076E Variable %s:variable:%s is empty or not found."}}`, account, id))
}

// hangUp closes the connection after it has sent the text.
func hangUp(text string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		_, _ = buf.WriteString(text)
		_ = buf.Flush()
		_ = conn.Close()
	}
}

// trickle sends half of an answer and then nothing.
func trickle(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", asJSON)
	rw.Header().Set("Content-Length", "100")
	_, _ = fmt.Fprint(rw, `{"dev:variable:db/password":"`)
	_ = http.NewResponseController(rw).Flush()
	wait(r, patience)
}

// faults are answers that are not Conjur's word about a variable.
func faults() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"500":                     answer(500, asHTML, ""),
		"502 page":                answer(502, asHTML, page),
		"503 that wants a pause":  answer(503, asHTML, "", "Retry-After", "1"),
		"429 that wants a pause":  answer(429, asHTML, "", "Retry-After", "1"),
		"503 whose body says 404": answer(503, asJSON, `{"error":{"code":"404","message":"not found"}}`),
		"503 in Conjur's words":   answer(503, asJSON, `{"error":{"code":"not_found","message":"CONJ00076E Variable dev:variable:db/password is empty or not found."}}`),
		"garbage":                 answer(500, "application/octet-stream", "\x00\xff\x1f garbage"),
		"garbage instead of HTTP": hangUp("\x00\xff\x1f garbage\r\n\r\n"),
		"truncated":               hangUp("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"error\":"),
		"closed":                  hangUp(""),
		"slow":                    trickle,
		"proxy's 404":             answer(404, asHTML, page),
		"proxy's 403":             answer(403, asHTML, page),
		"proxy's 200":             answer(200, asHTML, page),
		"bare 404":                answer(404, asHTML, ""),
		"bare 403":                answer(403, asHTML, ""),
		"401":                     answer(401, asHTML, ""),
		"redirect":                answer(302, asHTML, "", "Location", "https://127.0.0.1:1/"),
		"about another account":   conjur00076("other", odd),
		"about another variable":  conjur00076("dev", "another"),
	}
}
