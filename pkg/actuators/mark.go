package actuators

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/secretsync/syncer/pkg/versions"
)

// mark is what a role's comment says of the version that the role has: the
// fence. The zero mark is below all others.
type mark struct {
	version, fence string
	state          string
}

// The states of a mark. Between the last two, sessions are looked at once more.
const (
	accepted = "accepted"
	revoking = "revoking"
	revoked  = "revoked"
)

// errStands says that a role is to stay as it is.
var errStands = errors.New("it stays as it is")

var markForm = regexp.MustCompile(`\[syncer version ([A-Za-z0-9_-]+) fence ([A-Za-z0-9_-]+) (accepted|revoking|revoked)\]`)

func markOf(v versions.Version, state string) mark { return mark{v.ID, v.Fence, state} }

// readMark returns the mark in a comment; the zero mark if there is none.
func readMark(comment string) mark {
	found := markForm.FindStringSubmatch(comment)
	if found == nil {
		return mark{}
	}
	return mark{found[1], found[2], found[3]}
}

// in returns a comment with m as its mark. What else it says stays.
func (m mark) in(comment string) string {
	text := fmt.Sprintf("[syncer version %s fence %s %s]", m.version, m.fence, m.state)
	if markForm.MatchString(comment) {
		return markForm.ReplaceAllLiteralString(comment, text)
	}
	return strings.TrimSpace(comment + " " + text)
}

// accept returns the mark of a role that accepts v, or an error if the role
// carries a later fence, or has refused this one.
func (m mark) accept(v versions.Version) (mark, error) {
	if versions.Later(m.fence, v.Fence) || m.fence == v.Fence && m.state != accepted {
		return m, fmt.Errorf("%w: it carries %s, which is %s", ErrRefused, m.fence, m.state)
	}
	return markOf(v, accepted), nil
}

// refuse returns the mark of a role that refuses v in that state. A role that
// carries another version under a later fence stays as it is.
func (m mark) refuse(v versions.Version, state string) (mark, error) {
	switch {
	case versions.Later(m.fence, v.Fence) && m.version == v.ID && m.state == accepted:
		return m, fmt.Errorf("%w: it carries %s under the later fence %s", ErrRefused, v.ID, m.fence)
	case versions.Later(m.fence, v.Fence), m.fence == v.Fence && m.state == revoked:
		return m, errStands
	}
	return markOf(v, state), nil
}

// readmit returns the mark of a role that was about to refuse v and does not. A
// role that somebody else has changed meanwhile stays as it is.
func (m mark) readmit(v versions.Version) (mark, error) {
	if m == markOf(v, revoking) {
		return markOf(v, accepted), nil
	}
	return m, errStands
}
