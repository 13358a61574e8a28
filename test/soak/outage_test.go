//go:build long

package soak

import (
	"io"
	"net/http"
	"net/http/httptest"
	"time"
)

// outages are the ways in which a server fails to answer.
func outages() map[string]func(next http.Handler) http.HandlerFunc {
	says := func(status int, body string, header ...string) func(http.Handler) http.HandlerFunc {
		return func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}
		}
	}
	return map[string]func(http.Handler) http.HandlerFunc{
		"unavailable":   says(http.StatusServiceUnavailable, "<html>no server is available</html>"),
		"a proxy's 404": says(http.StatusNotFound, "<html>not found</html>"),
		"a proxy's 200": says(http.StatusOK, "<html>sign in</html>"),
		"busy":          says(http.StatusTooManyRequests, "", "Retry-After", "1"),
		"token refused": says(http.StatusUnauthorized, ""),
		"silent": func(http.Handler) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		},
		"hangs up": func(http.Handler) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		},
		"hangs up in the middle": func(next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				whole := httptest.NewRecorder()
				next.ServeHTTP(whole, r)
				for name, values := range whole.Header() {
					w.Header()[name] = values
				}
				w.WriteHeader(whole.Code)
				body := whole.Body.Bytes()
				_, _ = w.Write(body[:len(body)/2])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		},
		"slow": func(next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				wait := time.NewTimer(300 * time.Millisecond)
				defer wait.Stop()
				select {
				case <-wait.C:
					next.ServeHTTP(w, r)
				case <-r.Context().Done():
				}
			}
		},
	}
}

// fail has the server fail in that way, "" for none.
func (c *conjur) fail(name string) {
	outage := outages()[name]
	if outage == nil {
		c.Server.Intercept(nil)
		return
	}
	c.Server.Intercept(func(next http.Handler) http.Handler { return outage(next) })
}
