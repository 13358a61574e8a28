package actuators

import (
	"bytes"
	"context"
	"encoding/json"
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

// signatureHeader holds the signature of a message that is sent by HTTP.
const signatureHeader = "Syncer-Signature"

// HTTP posts messages to a service. A status of 2xx means yes. 409 means no, and the body
// says why. Any other status, or a missing answer, is an unknown outcome. Redirections
// are not followed.
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
			return nil, advise(withoutURL(err))
		}
		defer res.Body.Close()
		said, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
		switch {
		case res.StatusCode == http.StatusConflict:
			return said, fmt.Errorf("%w: the service answered 409", ErrRefused)
		case res.StatusCode < 200 || res.StatusCode > 299:
			return nil, fmt.Errorf("the service answered %d; see its log, and check the URL and the key of the set", res.StatusCode)
		case err != nil:
			return nil, err
		case len(said) > maxAnswer:
			return nil, fmt.Errorf("the service answered more than %d bytes", maxAnswer)
		}
		return said, nil
	}
}

// withoutURL returns the error without the URL, which may contain a secret.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// maxComplaint limits the standard error output of a program, in bytes.
const maxComplaint = 4 << 10

// refusedStatus is the exit status that means no: EX_NOPERM of sysexits.h.
const refusedStatus = 77

// Exec runs a program for each message. The program reads the message from its standard
// input and the signature from SYNCER_SIGNATURE. The exit status 0 means yes and 77 means
// no. Any other status is an unknown outcome. The standard output is the answer or the
// reason for a no. Standard error is copied to Syncer's, up to a limit, with the
// program's name on each line. Child processes that the program leaves behind are killed
// if they keep its output open.
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
		if errors.Is(err, exec.ErrWaitDelay) { // a child process keeps its output open
			_ = cmd.Cancel()
			err = nil
		}
		complains.print(os.Stderr, command[0], message)
		var ended *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the program was ended: %w; if it needs longer, raise the timeout of the set", ctx.Err())
		case errors.As(err, &ended) && ended.ExitCode() == refusedStatus:
			return said.said.Bytes(), fmt.Errorf("%w: the program ended with status %d", ErrRefused, refusedStatus)
		case err != nil:
			return nil, fmt.Errorf("the program failed: %w; see its lines in this log", err)
		}
		return said.said.Bytes(), nil
	}
}

// bounded keeps a program's output, up to the limit. It does not embed the buffer:
// io.Copy would use the buffer's ReadFrom and exceed the limit.
type bounded struct{ said bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.said.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("it said more than %d bytes", maxAnswer)
	}
	return b.said.Write(p)
}

// head keeps the first bytes of a program's standard error and drops the rest. It does
// not embed the buffer, for the same reason as bounded.
type head struct{ kept bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.kept.Write(p[:min(len(p), maxComplaint-h.kept.Len())])
	return len(p), nil
}

// print writes the lines, each with the program's name and without terminal control
// characters, unless they show a value of the message.
func (h *head) print(to io.Writer, program string, sent []byte) {
	var m message
	_ = json.Unmarshal(sent, &m) // Syncer made it
	for name, part := range m.Parts {
		defer clear(part)
		if !public(name) && shows(h.kept.String(), part) {
			_, _ = fmt.Fprintf(to, "rotation: %s: %s\n", filepath.Base(program), withheld)
			return
		}
	}
	for line := range strings.Lines(h.kept.String()) {
		_, _ = fmt.Fprintf(to, "rotation: %s: %s\n", filepath.Base(program), terminal.Plain(strings.TrimRight(line, "\r\n")))
	}
	if h.kept.Len() == maxComplaint {
		_, _ = fmt.Fprintf(to, "rotation: %s: what follows is left out\n", filepath.Base(program))
	}
}
