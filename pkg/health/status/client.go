package status

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Client requests the Status of a process.
type Client struct {
	URL   string // of its probes, such as http://127.0.0.1:8080
	Token string // "" if none is needed
}

// ErrUnauthorized means that the process requires another token.
var ErrUnauthorized = errors.New("401 Unauthorized")

// ErrForeign means that another program answered.
var ErrForeign = errors.New("the answer is not the status of a Syncer process")

// most bounds one answer or event, in bytes.
const most = 64 << 20

// Get returns the current Status.
func (c Client) Get(ctx context.Context) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, slow)
	defer cancel()
	body, err := c.ask(ctx, "/status.json", "application/json")
	if err != nil {
		return s, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(io.LimitReader(body, most)).Decode(&s); err != nil {
		return s, fmt.Errorf("%s/status.json: %w", c.URL, err)
	}
	if s.At.IsZero() {
		return s, fmt.Errorf("%s/status.json: %w", c.URL, ErrForeign)
	}
	return s, nil
}

// Follow calls show with the current Status and after each change, until ctx ends
// or the process is gone.
func (c Client) Follow(ctx context.Context, show func(Status)) error {
	body, err := c.ask(ctx, "/status/events", "text/event-stream")
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, most)
	var s Status
	var kind string
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = name
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if err := s.applyEvent(kind, data); err != nil {
			return fmt.Errorf("%s/status/events: %w", c.URL, err)
		}
		show(s)
	}
	if err := cmp.Or(ctx.Err(), lines.Err()); err != nil {
		return err
	}
	return fmt.Errorf("%s: the process has ended the stream", c.URL)
}

// applyEvent applies an event.
func (s *Status) applyEvent(kind string, data []byte) error {
	if kind == "status" {
		*s = Status{}
		return json.Unmarshal(data, s)
	}
	var c change
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	before := s.polls()
	s.At, s.Lanes, s.Rotations = c.At, c.Lanes, c.Rotations
	after := s.polls()
	old := map[string]bool{}
	for _, name := range c.Gone {
		old[name] = true
	}
	for _, t := range c.Targets {
		old[t.Name] = true
	}
	s.Targets = slices.DeleteFunc(s.Targets, func(t Target) bool { return old[t.Name] })
	for i, t := range s.Targets {
		if !t.Proven.IsZero() && t.Proven.Equal(before[t.Lane]) {
			s.Targets[i].Proven = after[t.Lane]
		}
	}
	s.Targets = append(s.Targets, c.Targets...)
	slices.SortFunc(s.Targets, func(a, b Target) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// ask sends a request, whose answer has a media type. The caller must close the body.
func (c Client) ask(ctx context.Context, path, kind string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := http.Client{
		Transport:     &http.Transport{ResponseHeaderTimeout: 10 * time.Second, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // Syncer sends none
	}
	answer, err := client.Do(r)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the rest repeats the address
	}
	if wrapped, ok := errors.AsType[*net.OpError](err); ok {
		err = wrapped.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.URL, err)
	}
	got, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode == http.StatusOK && got == kind {
		return answer.Body, nil
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil, fmt.Errorf("%s: %w", c.URL+path, ErrForeign)
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %s: the status page is off there; set server.status", c.URL+path, answer.Status)
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%s: %w", c.URL, ErrUnauthorized)
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
	return nil, errors.New(strings.TrimSuffix(c.URL+path+": "+answer.Status+": "+strings.TrimSpace(string(text)), ": "))
}
