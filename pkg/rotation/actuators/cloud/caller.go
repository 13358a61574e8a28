package cloud

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer limits the answer of a cloud, in bytes.
	maxAnswer = 1 << 20
	// longestWait limits the time that a cloud can ask to wait.
	longestWait = 15 * time.Minute
)

// caller sends requests to one service of a cloud.
type caller struct {
	service string // as an operator knows it, such as "AWS IAM"
	client  *http.Client
	code    func(answer []byte) string // the code of an error in the service's form

	quiet time.Time     // until then, the service wants no requests
	skew  time.Duration // how far the service's clock is ahead, as of its last answer
}

// newCaller returns a caller that follows no redirections: they would carry signatures
// and tokens elsewhere.
func newCaller(service string, client *http.Client, code func([]byte) string) *caller {
	own := *cmp.Or(client, http.DefaultClient)
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &caller{service: service, client: &own, code: code}
}

// now returns the time of the service's clock.
func (c *caller) now() time.Time { return time.Now().Add(c.skew) }

// do sends the request of a call. An answer other than 2xx is a fault. The caller clears
// the answer.
func (c *caller) do(ctx context.Context, call string, req *http.Request) ([]byte, error) {
	if rest := time.Until(c.quiet); rest > 0 {
		return nil, &fault{service: c.service, call: call, code: "asked to wait", wait: rest}
	}
	res, err := c.client.Do(req.WithContext(ctx))
	if err != nil {
		return nil, &fault{service: c.service, call: call, cause: reason(err)}
	}
	defer res.Body.Close()
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		c.skew = time.Until(at)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		clear(body)
		return nil, &fault{service: c.service, call: call, cause: reason(err)}
	case len(body) > maxAnswer:
		clear(body)
		return nil, &fault{service: c.service, call: call, cause: fmt.Errorf("the answer has more than %d bytes", maxAnswer)}
	case res.StatusCode >= 200 && res.StatusCode <= 299:
		return body, nil
	}
	f := &fault{service: c.service, call: call, status: res.StatusCode, code: plain(c.code(body))}
	if f.throttled() {
		f.wait = min(c.retryAfter(res.Header.Get("Retry-After")), longestWait)
		c.quiet = time.Now().Add(f.wait)
	}
	clear(body)
	return nil, f
}

// retryAfter returns how long a Retry-After asks to wait; 2 s without one. A date is one
// of the service's clock.
func (c *caller) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<20)) * time.Second // longer than longestWait
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(c.now()), 0)
	}
	return 2 * time.Second
}

// plain returns a code of letters, digits, - and _. Everything else in an answer may
// repeat the request.
func plain(code string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.'
	}
	return strings.Map(func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return -1
	}, code[:min(len(code), 80)])
}

// reason returns why there was no answer, without the URL.
func reason(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the timeout has passed")
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return errors.New("the connection was closed, or the answer is not HTTP")
}

// fault is a call that failed. It contains no text of an answer but its code.
type fault struct {
	service, call string
	status        int // 0: no answer
	code          string
	wait          time.Duration // how long the service asked to wait
	cause         error         // why there was no answer
}

func (f *fault) Error() string {
	answer := strings.TrimSpace(fmt.Sprintf("%d %s", f.status, f.code))
	switch {
	case f.cause != nil:
		return fmt.Sprintf("%s did not answer %s (%v); Syncer tries again", f.service, f.call, f.cause)
	case f.throttled():
		return fmt.Sprintf("%s limits the rate of requests and did not accept %s; Syncer waits %v and tries again", f.service, f.call, f.wait.Round(time.Second))
	case f.full():
		return fmt.Sprintf("%s does not accept %s, because the limit of keys is reached, or a policy forbids more (%s)", f.service, f.call, answer)
	case f.invalid() || f.expired():
		return fmt.Sprintf("%s does not accept the credentials of Syncer (%s); correct them", f.service, answer)
	case f.missing():
		return fmt.Sprintf("%s does not find what %s names (%s); correct the name in the set", f.service, f.call, answer)
	case f.code == disabled:
		return fmt.Sprintf("%s is not enabled (%s); enable its API in the project of Syncer's identity", f.service, answer)
	case f.status == http.StatusBadRequest:
		return fmt.Sprintf("%s does not accept %s (%s); correct the names in the set, or the identity of Syncer", f.service, f.call, answer)
	case f.denied():
		return fmt.Sprintf("%s refuses %s (%s); permit this call, as \"syncer rotate init\" prints it", f.service, f.call, answer)
	}
	return fmt.Sprintf("%s answered %s with %s; Syncer tries again", f.service, f.call, answer)
}

var (
	throttles = []string{"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown"}
	limits    = []string{"LimitExceeded", "FAILED_PRECONDITION", "Directory_QuotaExceeded"}
	expiries  = []string{"ExpiredToken", "ExpiredTokenException", "UNAUTHENTICATED", "InvalidAuthenticationToken"}
	absences  = []string{"NoSuchEntity", "NoSuchEntityException", "NOT_FOUND", "Request_ResourceNotFound"}
	skews     = []string{"RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "InvalidSignatureException", "invalid_grant"}
	invalids  = []string{"InvalidClientTokenId", "SignatureDoesNotMatch", "invalid_grant", "invalid_client", "unauthorized_client"}
)

func (f *fault) throttled() bool {
	return f.wait > 0 || f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable || slices.Contains(throttles, f.code)
}

func (f *fault) full() bool { return !f.throttled() && slices.Contains(limits, f.code) }

// missing reports whether the service says that the object does not exist. A bare 404 may
// be that of a proxy.
func (f *fault) missing() bool { return slices.Contains(absences, f.code) }

// expired reports whether the credentials of this process are no longer valid.
func (f *fault) expired() bool {
	return slices.Contains(expiries, f.code) || f.status == http.StatusUnauthorized
}

func (f *fault) skewed() bool { return slices.Contains(skews, f.code) }

// invalid reports whether the key that signed the request is not accepted.
func (f *fault) invalid() bool { return slices.Contains(invalids, f.code) }

func (f *fault) denied() bool {
	return f.status == http.StatusForbidden && !f.expired() && !f.skewed() && !f.invalid()
}

// known reports whether the call is known to have changed nothing, and will not change
// anything if it is repeated soon.
func (f *fault) known() bool { return f.full() || f.denied() || f.missing() }

// form returns the request of a call with a form as its body.
func form(to string, values url.Values) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodPost, to, bytes.NewReader([]byte(values.Encode())))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	}
	return req, err
}
