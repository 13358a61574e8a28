package actuators

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// mark is the record of a user's version beside the user: the fence, and the owner of the
// version. The zero mark is below all others and has no owner.
type mark struct {
	version, fence string
	state          string
	owner          owner
}

// owner is the part of a mark that names the set that wrote it.
type owner struct {
	set, identity string
	since         string // the time of the write, in RFC 3339
}

// The states of a mark. Between the last two, sessions are checked once more.
const (
	accepted = "accepted"
	revoking = "revoking"
	revoked  = "revoked"
)

// errStands means that a user must stay unchanged.
var errStands = errors.New("it stays as it is")

// A mark without the second pair of brackets has no owner, so it belongs to no set.
var markForm = lazyregexp.New(`\[syncer version ([A-Za-z0-9_-]+) fence ([A-Za-z0-9_-]+) (accepted|revoking|revoked)\]` +
	`(?: \[of set ("(?:[^"\\]|\\.)*") ([A-Za-z0-9_-]+) since ([0-9TZ:-]+)\])?`)

func markOf(v versions.Version, state string) mark {
	return mark{version: v.ID, fence: v.Fence, state: state}
}

// readMark returns the mark in a comment; the zero mark if there is none.
func readMark(comment string) mark {
	found := markForm().FindStringSubmatch(comment)
	if found == nil {
		return mark{}
	}
	set, err := strconv.Unquote(found[4])
	if err != nil {
		return mark{version: found[1], fence: found[2], state: found[3]}
	}
	return mark{found[1], found[2], found[3], owner{set, found[5], found[6]}}
}

// in returns the comment with m as its mark. The rest of the comment stays.
func (m mark) in(comment string) string {
	text := fmt.Sprintf("[syncer version %s fence %s %s]", m.version, m.fence, m.state)
	if m.owner.identity != "" {
		text += fmt.Sprintf(" [of set %s %s since %s]", strconv.Quote(m.owner.set), m.owner.identity, m.owner.since)
	}
	if markForm().MatchString(comment) {
		return markForm().ReplaceAllLiteralString(comment, text)
	}
	return strings.TrimSpace(comment + " " + text)
}

// foreign returns the owner of the mark as an error, if another set wrote it; otherwise
// nil.
func (m mark) foreign(set string, doc *versions.Document) error {
	_, known := doc.Version(m.version)
	same := m.owner.set == set
	switch {
	case m == mark{}, same && known:
		return nil
	case m.owner == owner{}:
		return fmt.Errorf("it has version %s of an unknown set, which is %s", m.version, m.state)
	case !same:
		return fmt.Errorf("it has version %s of the set %s, which is %s since %s", m.version, m.owner.set, m.state, m.owner.since)
	case m.owner.identity != doc.Identity:
		return fmt.Errorf("it has version %s of an earlier set %s, which is %s since %s", m.version, m.owner.set, m.state, m.owner.since)
	}
	return nil
}

// barred returns why a set may not give the user a version. The mark belongs to another
// set or to a later state of this set. A "claim" allows the set to take over everything
// marked before.
func (m mark) barred(set string, doc *versions.Document) error {
	if m == (mark{}) || doc.Claimed != "" && !versions.Later(m.fence, doc.Claimed) {
		return nil
	}
	err := m.foreign(set, doc)
	if err == nil && doc.Predates(m.fence) {
		err = fmt.Errorf("it has version %s of a later state of the set, as after a restored backup, which is %s since %s", m.version, m.state, cmp.Or(m.owner.since, "an unknown time"))
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf(`%w; use another user, or take it over by "syncer rotate claim %s"`, err, set)
}

// of returns the mark as written by the given set now.
func (m mark) of(set string, doc *versions.Document) mark {
	if m.owner = (owner{}); doc.Identity != "" {
		m.owner = owner{set, doc.Identity, time.Now().UTC().Format(time.RFC3339)}
	}
	return m
}

// inUse is 1 for a user with a version that somebody may use, else 0.
func inUse(m mark) int {
	if m.state == accepted || m.state == revoking {
		return 1
	}
	return 0
}

// accept returns the mark of a user that accepts v. It returns an error if the user
// carries a later fence or has refused this fence.
func (m mark) accept(v versions.Version) (mark, error) {
	if versions.Later(m.fence, v.Fence) || m.fence == v.Fence && m.state != accepted {
		return m, fmt.Errorf("%w: it carries %s, which is %s", ErrRefused, m.fence, m.state)
	}
	return markOf(v, accepted), nil
}

// refuse returns the mark of a user that refuses v in the given state. A user that
// carries another version under a later fence stays unchanged.
func (m mark) refuse(v versions.Version, state string) (mark, error) {
	switch {
	case versions.Later(m.fence, v.Fence) && m.version == v.ID && m.state == accepted:
		return m, fmt.Errorf("%w: it carries %s under the later fence %s", ErrRefused, v.ID, m.fence)
	case versions.Later(m.fence, v.Fence), m.fence == v.Fence && m.state == revoked:
		return m, errStands
	}
	return markOf(v, state), nil
}

// readmit returns the mark of a user that keeps v after all, although it was about to
// refuse v. If somebody else has changed the user in the meantime, it stays unchanged.
func (m mark) readmit(v versions.Version) (mark, error) {
	if m.owner = (owner{}); m == markOf(v, revoking) {
		return markOf(v, accepted), nil
	}
	return m, errStands
}
