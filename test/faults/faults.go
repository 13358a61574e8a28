// Package faults plans faults of the requests that a program sends in a test: one at a
// certain request, and some by chance after it.
package faults

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Kind is a kind of fault.
type Kind int

// The kinds of faults.
const (
	Cut        Kind = iota // it does not arrive
	Lost                   // its answer is lost
	KillBefore             // the program dies before it arrives
	KillAfter              // the program dies before its answer arrives
	Kinds                  // how many there are
)

func (k Kind) String() string { return []string{"cut", "lost", "killed before", "killed after"}[k] }

// Arrives reports whether the request is carried out.
func (k Kind) Arrives() bool { return k == Lost || k == KillAfter }

// Plan is the faults of one program. It may be used by several goroutines.
type Plan struct {
	At   int        // the request, from 0 on, that meets the first fault; negative: none does
	Kind Kind       // of the first fault
	Dice *rand.Rand // chooses the faults after the first one

	mu   sync.Mutex
	n    int
	kill func()
}

// None returns a plan without faults, which counts the requests.
func None() *Plan { return &Plan{At: -1} }

// KillBy sets the function that kills the running program. Call it before the program's
// first request.
func (p *Plan) KillBy(kill func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill = kill
}

// Next returns the fault of the next request, and false if it meets none.
func (p *Plan) Next() (Kind, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.n
	p.n++
	switch {
	case n == p.At:
		return p.Kind, true
	case p.At >= 0 && n > p.At && n < p.At+20 && p.Dice.IntN(10) == 0:
		return Kind(p.Dice.IntN(int(Kinds))), true
	}
	return 0, false
}

// Rest ends the faults.
func (p *Plan) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.At = -1
}

// Requests returns how many requests the program has sent.
func (p *Plan) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// End kills the program if the fault requires that.
func (p *Plan) End(kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == KillBefore || kind == KillAfter {
		p.kill()
	}
}

// Serve lets next answer the request, or applies the next fault to it.
func (p *Plan) Serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	kind, is := p.Next()
	if !is {
		next.ServeHTTP(w, r)
		return
	}
	if kind.Arrives() {
		next.ServeHTTP(httptest.NewRecorder(), r)
	}
	p.End(kind)
	panic(http.ErrAbortHandler)
}

// Before applies the faults to requests with this User-Agent before next answers them.
func (p *Plan) Before(client string) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.UserAgent(), client) {
				p.Serve(next, w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
