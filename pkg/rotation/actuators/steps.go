package actuators

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	// maxAnswer limits the answer of a service or a program, in bytes.
	maxAnswer = 64 << 10
	// longestName limits the reported name of a user of a version, in bytes.
	longestName = 100
	// longestReason limits the reported reason of a refusal, in bytes.
	longestReason = 400
)

// Steps is an Actuator that delegates each step to its Send: [HTTP] or [Exec].
type Steps struct {
	Set string // the variable's id
	// Key returns the key that signs messages; nil means no signature.
	Key  func(context.Context) (secret.Value, error)
	Send Send
	// Timeout limits one step; 0 means 30 s.
	Timeout time.Duration
}

// Send sends a message with its signature, in hex, and returns the answer. The error is
// ErrRefused if the answer was no; it may contain the reason. The caller clears the
// message afterwards.
type Send func(ctx context.Context, message []byte, signature string) ([]byte, error)

// message is the JSON message that is sent. Parts are base64 in it.
type message struct {
	Step string `json:"step"` // apply, verify, revoke or inUse
	Set  string `json:"set"`
	// Identity distinguishes the set from other sets that have or had the same id.
	// Claimed is the fence up to which the set takes over the objects of another set.
	Identity string            `json:"identity,omitempty"`
	Claimed  string            `json:"claimed,omitempty"`
	ID       string            `json:"id"`
	Fence    string            `json:"fence"` // the id, or after a rollback a later one
	Time     time.Time         `json:"time"`
	Parts    map[string][]byte `json:"parts,omitempty"`
}

// answer is the optional content of an answer.
type answer struct {
	Parts map[string][]byte `json:"parts"` // of apply: the minted parts
	InUse []string          `json:"inUse"` // of inUse: the users
}

// Apply sends the step apply and returns the parts of the answer.
func (s *Steps) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	a, err := s.step(ctx, "apply", v)
	if err != nil || len(a.Parts) == 0 {
		return nil, err
	}
	minted := map[string]secret.Value{}
	for name, content := range a.Parts {
		minted[name] = secret.New(content)
	}
	return minted, nil
}

// Prepare returns an error while nothing can be sent.
func (s *Steps) Prepare(ctx context.Context, _ *versions.Document) (map[string]secret.Value, error) {
	_, err := s.sign(ctx, nil)
	return nil, err
}

// Check returns the reasons why steps cannot be sent.
func (s *Steps) Check(ctx context.Context, _ *versions.Document) []error {
	if _, err := s.Prepare(ctx, nil); err != nil {
		return []error{err}
	}
	return nil
}

// Verify sends the step verify.
func (s *Steps) Verify(ctx context.Context, v versions.Version) error {
	_, err := s.step(ctx, "verify", v)
	return err
}

// Revoke sends the step revoke.
func (s *Steps) Revoke(ctx context.Context, v versions.Version) error {
	_, err := s.step(ctx, "revoke", v)
	return err
}

// InUse sends the step inUse and returns the users that the answer names. Names that are
// too long for a message are cut off.
func (s *Steps) InUse(ctx context.Context, v versions.Version) ([]string, error) {
	a, err := s.step(ctx, "inUse", v)
	for i, who := range a.InUse {
		a.InUse[i] = brief.OneLine(reason([]byte(who), v), longestName)
	}
	return a.InUse, err
}

func (s *Steps) step(ctx context.Context, step string, v versions.Version) (a answer, err error) {
	ctx, cancel := within(ctx, s.Timeout)
	defer cancel()
	set := setOf(v)
	m := message{Step: step, Set: s.Set, Identity: set.Identity, Claimed: set.Claimed, ID: v.ID, Fence: v.Fence, Time: time.Now().UTC(), Parts: map[string][]byte{}}
	for name, part := range v.Parts {
		m.Parts[name] = part.Bytes()
	}
	body, err := json.Marshal(m)
	if err != nil {
		return a, err
	}
	defer clear(body)
	signature, err := s.sign(ctx, body)
	if err != nil {
		return a, err
	}
	said, err := s.Send(ctx, body, signature)
	defer clear(said)
	switch {
	case errors.Is(err, ErrRefused) && len(said) > 0:
		return a, fmt.Errorf("%s of %s: %w: %s", step, v.ID, err, reason(said, v))
	case err != nil:
		return a, fmt.Errorf("%s of %s: %w", step, v.ID, err)
	case len(said) > 0 && json.Unmarshal(said, &a) != nil:
		return answer{}, fmt.Errorf("%s of %s: the answer must be empty or the documented JSON", step, v.ID)
	}
	return a, nil
}

// reason returns why a step was refused, unless that shows a value that was sent.
func reason(said []byte, v versions.Version) string {
	var values [][]byte
	for name, part := range v.Parts {
		if !public(name) {
			values = append(values, part.Bytes())
		}
	}
	return withholdValues(string(said), values, longestReason)
}

// sign returns the HMAC-SHA-256 of a message, in hex.
func (s *Steps) sign(ctx context.Context, message []byte) (string, error) {
	if s.Key == nil {
		return "", nil
	}
	key, err := s.Key(ctx)
	if err != nil {
		return "", fmt.Errorf("the key that signs: %w", err)
	}
	defer key.Wipe()
	if key.Len() < 16 {
		return "", errors.New("the key that signs has fewer than 16 bytes; set a longer one")
	}
	mac := hmac.New(sha256.New, key.Bytes())
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil)), nil
}
