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
