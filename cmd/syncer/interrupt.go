package main

import (
	"context"
	"io"
)

// interruptible is an input whose reads end with the context, so that ^C ends a command
// that waits for its standard input.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

// Read implements io.Reader. If the context ends first, the blocked read remains until the
// process exits, which follows.
func (r interruptible) Read(p []byte) (int, error) {
	buffer := make([]byte, len(p))
	type read struct {
		n   int
		err error
	}
	done := make(chan read, 1)
	go func() {
		n, err := r.in.Read(buffer)
		done <- read{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case got := <-done:
		if err := r.ctx.Err(); err != nil {
			return 0, err // ^C also ended the program that writes the input, maybe halfway
		}
		copy(p, buffer[:got.n])
		clear(buffer) // it may hold a secret value
		return got.n, got.err
	}
}
