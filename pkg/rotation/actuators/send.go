package actuators

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/secretsync/syncer/internal/terminal"
)

// signatureHeader has the signature of a message that is sent by HTTP.
const signatureHeader = "Syncer-Signature"

// HTTP posts messages to a service. An answer of 2xx is yes, and 409 is no, whose body
// says why; any other, and none, is an unknown outcome. A redirection is not followed.
func HTTP(to string, client *http.Client) Send {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(ctx context.Context, message []byte, signature string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(message))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(signatureHeader, signature)
		res, err := own.Do(req)
		if err != nil {
			return nil, withoutURL(err)
		}
		defer res.Body.Close()
		said, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
		switch {
		case res.StatusCode == http.StatusConflict:
			return said, fmt.Errorf("%w: the service answered 409", ErrRefused)
		case res.StatusCode < 200 || res.StatusCode > 299:
			return nil, fmt.Errorf("the service answered %d", res.StatusCode)
		case err != nil:
			return nil, err
		case len(said) > maxAnswer:
			return nil, fmt.Errorf("the service answered more than %d bytes", maxAnswer)
		}
		return said, nil
	}
}

// withoutURL returns what went wrong, without the URL, which may have a secret.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// maxComplaint bounds what a program may write to standard error, in bytes.
const maxComplaint = 4 << 10

// refusedStatus is the exit status that says no: EX_NOPERM of sysexits.h.
const refusedStatus = 77

// Exec runs a program for each message, which comes at its standard input, with
// the signature in SYNCER_SIGNATURE. The exit status 0 is yes and 77 is no; any
// other is an unknown outcome. The answer, or why not, is its standard output. What it writes
// to standard error goes where ours does, up to a bound, each line with its name. What it has started and leaves behind is
// killed if it holds the output.
func Exec(environ []string, command ...string) Send {
	return func(ctx context.Context, message []byte, signature string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		said := &bounded{}
		complains := &head{}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(message), said, complains
		cmd.Env = append(slices.Clone(environ), "SYNCER_SIGNATURE="+signature)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) { // what it has left behind holds its output
			_ = cmd.Cancel()
			err = nil
		}
		complains.print(os.Stderr, command[0])
		var ended *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the program was ended: %w", ctx.Err())
		case errors.As(err, &ended) && ended.ExitCode() == refusedStatus:
			return said.said.Bytes(), fmt.Errorf("%w: the program ended with status %d", ErrRefused, refusedStatus)
		case err != nil:
			return nil, fmt.Errorf("the program: %w", err)
		}
		return said.said.Bytes(), nil
	}
}

// bounded takes what a program says, up to the bound. It does not embed the buffer:
// io.Copy would use ReadFrom of that, past the bound.
type bounded struct{ said bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.said.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("it said more than %d bytes", maxAnswer)
	}
	return b.said.Write(p)
}

// head takes the first bytes that a program complains with, and drops the rest. It
// does not embed the buffer, as bounded does not.
type head struct{ kept bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.kept.Write(p[:min(len(p), maxComplaint-h.kept.Len())])
	return len(p), nil
}

// print writes the lines, each with the program's name and without what a terminal
// would obey.
func (h *head) print(to io.Writer, program string) {
	for line := range strings.Lines(h.kept.String()) {
		_, _ = fmt.Fprintf(to, "rotation: %s: %s\n", filepath.Base(program), terminal.Plain(strings.TrimRight(line, "\r\n")))
	}
	if h.kept.Len() == maxComplaint {
		_, _ = fmt.Fprintf(to, "rotation: %s: what follows is left out\n", filepath.Base(program))
	}
}
