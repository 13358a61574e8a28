package inject

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/safefile"
)

// The exit statuses of a Receiver.
const (
	StatusStored  = 0
	StatusFailed  = 1   // nothing complete arrived in time, or it could not be stored
	StatusRefused = 126 // the input is not the expected one
)

const (
	// feedTime bounds the time until the script is complete.
	feedTime = 5 * time.Second
	// surplusTime is the wait after a complete script, to see whether more follows.
	// The end of the input may come late, or never.
	surplusTime = 100 * time.Millisecond
)

// Receiver performs the effect of Conjur's script and nothing else; it is not a
// shell. It stores the script's certificate if it recognizes the script, and if an
// Inbox at the same path awaits a certificate for that key.
type Receiver struct {
	Path    string // of the certificate file
	Scripts []Script
	// Args are the arguments after the name. They must be empty.
	Args  []string
	Stdin *os.File
}

// Receive returns the exit status. The error explains a status other than
// StatusStored, without any of the input. Receive writes no output before the
// certificate is stored, because the caller may be gone.
func (r Receiver) Receive() (status int, err error) {
	if err := r.checkCall(); err != nil {
		return StatusRefused, err
	}
	text, err := r.readScript()
	if errors.Is(err, errIncomplete) {
		return StatusFailed, err
	}
	if err != nil {
		return StatusRefused, err
	}
	c, err := parse(text, r.Scripts)
	if err != nil {
		return StatusRefused, err
	}
	key, err := safefile.Read(r.Path+awaited, maxText)
	if err != nil || !bytes.Equal(key, fingerprint(c.key)) {
		return StatusRefused, errors.New("no certificate for this key is awaited")
	}
	if err := safefile.Replace(r.Path, c.pem); err != nil {
		return StatusFailed, err
	}
	return StatusStored, nil
}

// checkCall refuses all calls except that of a shell that reads a script.
func (r Receiver) checkCall() error {
	info, err := r.Stdin.Stat()
	switch {
	case len(r.Args) > 0:
		return errors.New("this is not a shell: it takes no arguments")
	case err != nil:
		return errors.New("standard input is closed")
	case info.Mode()&os.ModeCharDevice != 0:
		return errors.New("this is not a shell: standard input is a terminal or a device")
	}
	return nil
}

var errIncomplete = fmt.Errorf("no whole script within %v", feedTime)

// readScript reads the script. It stops at the end of the input. Because that end may not
// come, it also stops when the script is complete and nothing follows.
func (r Receiver) readScript() ([]byte, error) {
	deadline := time.Now().Add(feedTime)
	buf := make([]byte, 0, maxText+1)
	for {
		until, whole := deadline, false
		if _, err := parse(buf, r.Scripts); err == nil {
			until, whole = time.Now().Add(surplusTime), true
		}
		n, err := r.readUntil(buf[len(buf):cap(buf)], until)
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !whole:
			return nil, errIncomplete
		case errors.Is(err, os.ErrDeadlineExceeded), err == nil && n == 0:
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) > maxText:
			return nil, fmt.Errorf("more than %d bytes came", maxText)
		}
	}
}

// readUntil reads some bytes, and none at the end of the input. It starts no
// goroutine that could outlive it.
func (r Receiver) readUntil(into []byte, until time.Time) (int, error) {
	fd := int(r.Stdin.Fd())
	for {
		left := time.Until(until)
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(left.Milliseconds())+1)
		if err == nil && n > 0 {
			n, err = unix.Read(fd, into)
			if err == nil {
				return n, nil
			}
		}
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return 0, fmt.Errorf("standard input: %w", err)
		}
	}
}
