package actuators

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Overlap rotates the passwords of one user of a server that accepts several at a time.
// A version has the parts "username" and "password". Beside the user, the server holds a
// seal, which names the set that owns the user. It holds no fence. Therefore the set is
// read again right before any change. A password that the set does not know stays.
type Overlap struct {
	Set, User   string // Set is the variable's id
	EndSessions bool   // end all sessions of the user after a password was removed
	// Current reads the set again. The caller wipes the result.
	Current func(context.Context) (*versions.Document, error)
	Timeout time.Duration // limits one act; 0 means 30 s
	Server  Account
}

// Account is a server on which one user has several passwords. The context of each call
// has a deadline.
type Account interface {
	// places returns where the passwords of a user are changed, each independently: the
	// addresses, or the accounts that the user has by its host.
	places(ctx context.Context, user string) ([]string, error)
	// most is how many passwords the user can have; 0 means any number.
	most() int
	// readAccount returns what the user accepts at a place. The error says how to create a
	// user that does not exist.
	readAccount(ctx context.Context, place, user string, known []secret.Value) (account, error)
	// setPasswords makes the user accept the wanted ones of the known passwords, and those that are
	// not known, and stores the seal. It fails if the user has changed since it was looked
	// at, where the server can tell. If nothing differs, an earlier setPasswords may have failed at
	// its end.
	setPasswords(ctx context.Context, place, user string, was account, known []secret.Value, wanted []bool, owner seal) error
	// sessionsBefore returns the sessions that began before a time, each for an operator.
	// It returns none if the server does not tell.
	sessionsBefore(ctx context.Context, user string, before time.Time) ([]string, error)
	loginServer
}

// account is what a user accepts at one place.
type account struct {
	accepts []bool   // for each known password
	others  []string // the other passwords, each named by a part of its digest
	owner   seal
}

// seal names the set that owns a user, and since when. A server can store its 32 bytes
// like a digest of a password. The zero seal has no owner.
type seal [sha256.Size]byte

const sealed = "syncer"

// sealOf returns the seal of a set, as of now.
func sealOf(set string, doc *versions.Document) (s seal) {
	copy(s[:], sealed)
	binary.BigEndian.PutUint32(s[len(sealed):], uint32(time.Now().Unix()))
	digest := sha256.Sum256([]byte(doc.Identity + " " + set))
	copy(s[len(sealed)+4:], digest[:])
	return s
}

// isSeal reports whether a digest is a seal.
func isSeal(digest []byte) bool {
	return len(digest) == len(seal{}) && bytes.HasPrefix(digest, []byte(sealed))
}

func (s seal) since() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(s[len(sealed):])), 0).UTC()
}

func (s seal) is(other seal) bool { return bytes.Equal(s[len(sealed)+4:], other[len(sealed)+4:]) }

// barred returns why a set may not change the user. A "claim" allows the set to take over
// a user that another set owned before.
func (s seal) barred(set string, doc *versions.Document) error {
	if s == (seal{}) || s.is(sealOf(set, doc)) || doc.Claimed != "" && !versions.Later(versions.IDAt(s.since()), doc.Claimed) {
		return nil
	}
	return fmt.Errorf(`another set owns it since %s; use another user, or take it over by "syncer rotate claim %s"`, s.since().Format(time.RFC3339), set)
}

// Statements is as in [Turns].
func (o *Overlap) Statements() []string {
	return o.Server.statements([]string{o.User}, o.EndSessions)
}

// Check returns the obstacles to a rotation. It names passwords that the set does not know.
func (o *Overlap) Check(ctx context.Context, doc *versions.Document) []error {
	within, cancel := within(ctx, o.Timeout)
	defer cancel()
	problems := o.Server.findObstacles(within, []string{o.User}, o.EndSessions)
	found, err := o.inspect(within, doc, len(doc.Versions) > 0)
	problems = append(problems, found...)
	if err != nil && len(problems) == 0 {
		problems = []error{err}
	}
	return problems
}

// Barred returns, for each place where the set may not change the user, why.
func (o *Overlap) Barred(ctx context.Context, doc *versions.Document) []error {
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	problems, err := o.inspect(ctx, doc, false)
	if err != nil {
		problems = append(problems, err)
	}
	return problems
}

// inspect returns, for each place, why the set may not change the user. If strangers is
// true, it also names passwords that the set does not know.
func (o *Overlap) inspect(ctx context.Context, doc *versions.Document, strangers bool) (problems []error, err error) {
	err = o.each(ctx, doc, func(place string, is account) error {
		if strangers && len(is.others) > 0 {
			problems = append(problems, fmt.Errorf("user %s at %s also accepts passwords that the set does not know: %s; Syncer leaves them, so remove each that nobody uses", o.User, place, strings.Join(is.others, ", ")))
		}
		if err := is.owner.barred(o.Set, doc); err != nil {
			problems = append(problems, fmt.Errorf("user %s at %s: %w", o.User, place, err))
		}
		return nil
	})
	return problems, err
}

// each looks at the user at each place.
func (o *Overlap) each(ctx context.Context, doc *versions.Document, do func(place string, is account) error) error {
	places, err := o.Server.places(ctx, o.User)
	if err != nil {
		return err
	}
	for _, place := range places {
		is, err := o.Server.readAccount(ctx, place, o.User, passwords(doc))
		if err == nil {
			err = do(place, is)
		}
		if err != nil {
			return fmt.Errorf("user %s at %s: %w", o.User, place, err)
		}
	}
	return nil
}

// passwords returns those of all versions, in their order; none for a retired version.
func passwords(doc *versions.Document) (all []secret.Value) {
	for _, v := range doc.Versions {
		all = append(all, v.Parts[password])
	}
	return all
}

// Prepare returns the username. The user must not belong to another set, and a password
// must be free.
func (o *Overlap) Prepare(ctx context.Context, doc *versions.Document) (map[string]secret.Value, error) {
	valid := 0
	for _, v := range doc.Versions {
		if v.State != versions.Retired {
			valid++
		}
	}
	if most := o.Server.most(); most > 0 && valid >= most {
		return nil, fmt.Errorf("no password of the user %s is free, because each of its %d has a version that is still valid", o.User, most)
	}
	if problems := o.Barred(ctx, doc); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return map[string]secret.Value{username: secret.New([]byte(o.User))}, nil
}

// Apply adds the version's password at each place.
func (o *Overlap) Apply(ctx context.Context, v versions.Version) (map[string]secret.Value, error) {
	return nil, o.change(ctx, v, true)
}

// Verify logs in at every address.
func (o *Overlap) Verify(ctx context.Context, v versions.Version) error {
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	return o.Server.verify(ctx, user(v), v.Parts[password].Bytes())
}

// Revoke removes the version's password at each place. With EndSessions, it then ends all
// sessions of the user, because the server does not tell with which password one began.
func (o *Overlap) Revoke(ctx context.Context, v versions.Version) error {
	if err := o.change(ctx, v, false); err != nil || !o.EndSessions {
		return err
	}
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	return o.Server.endSessions(ctx, o.User)
}

// change makes the user accept or refuse the password of a version at each place.
func (o *Overlap) change(ctx context.Context, v versions.Version, accept bool) error {
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	doc, err := Still(ctx, o.Current, v, v.State)
	if err != nil {
		return err
	}
	defer doc.Wipe()
	known, own := passwords(doc), sealOf(o.Set, doc)
	at := slices.IndexFunc(doc.Versions, func(known versions.Version) bool { return known.ID == v.ID })
	return o.each(ctx, doc, func(place string, is account) error {
		err := is.owner.barred(o.Set, doc)
		if err != nil && !accept && !is.accepts[at] {
			return nil // another set took the user over, and the password is refused already
		}
		if err != nil {
			return err
		}
		wanted := slices.Clone(is.accepts)
		wanted[at] = accept
		return o.Server.setPasswords(ctx, place, o.User, is, known, wanted, own)
	})
}

// InUse returns the sessions that began before the next version existed, unless EndSessions
// is set. Their programs have this password or an older one. With which password a later
// session began, the server does not tell.
func (o *Overlap) InUse(ctx context.Context, v versions.Version) ([]string, error) {
	next := slices.IndexFunc(setOf(v).Versions, func(known versions.Version) bool { return known.ID == v.ID }) - 1 // the newest is first
	if o.EndSessions || next < 0 {
		return nil, nil
	}
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	return o.Server.sessionsBefore(ctx, o.User, v.Set.Versions[next].Made)
}
