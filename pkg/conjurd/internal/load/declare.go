package load

import (
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// declare creates or updates the text's records. It checks their owners afterwards,
// because an owner may follow later in the text.
func (l *loader) declare() error {
	for _, rec := range l.st.Records {
		if err := l.record(rec); err != nil {
			return err
		}
	}
	for _, rec := range l.st.Records {
		if err := l.known(rec.Owner); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) record(rec policy.Record) error {
	if err := l.mayTouch(rec.ID); err != nil {
		return err
	}
	if !l.req.inBranch(rec.ID) && rec.ID != l.ns.Standing(rec.ID.Kind()) && !l.tx.Exists(string(rec.ID)) {
		return &policy.Error{Message: rec.ID.Title() + " is outside of " + policy.Ref(l.branch).Title()}
	}
	o, err := l.tx.Object(string(rec.ID))
	if err != nil {
		return err
	}
	fresh := o == nil
	if fresh {
		o = &store.Object{CreatedAt: l.req.Now, Owner: string(rec.Owner), Policy: l.branch}
	}
	if err := l.own(rec, o, fresh); err != nil {
		return err
	}
	l.annotate(o, rec.Annotations)
	if fresh || l.req.Mode != Add {
		o.Layers = nil
		for _, layer := range rec.Layers {
			o.Layers = append(o.Layers, string(layer))
		}
	}
	if err := l.tx.PutObject(string(rec.ID), o); err != nil {
		return err
	}
	return l.credentials(rec, fresh)
}

// own sets the owner. The owner of a role is also a member of it. A record that
// another policy declared keeps its owner.
func (l *loader) own(rec policy.Record, o *store.Object, fresh bool) error {
	id, owner := string(rec.ID), string(rec.Owner)
	if !fresh {
		if l.req.Mode == Add || o.Policy != l.branch || o.Owner == owner {
			return nil
		}
		if err := l.tx.DeleteMembership(id, o.Owner, true); err != nil {
			return err
		}
		o.Owner = owner
	}
	if !policy.IsRole(rec.ID.Kind()) {
		return nil
	}
	return l.tx.PutMembership(store.Membership{Role: id, Member: owner, Admin: true, Ownership: true, Policy: l.branch})
}

// annotate adds the annotations of the text. If the mode permits changes, it also
// changes annotations that the branch created.
func (l *loader) annotate(o *store.Object, as []policy.Annotation) {
	at := map[string]int{} // name → position
	for i, have := range o.Annotations {
		at[have.Name] = i
	}
	for _, a := range as {
		i, ok := at[a.Name]
		switch {
		case !ok:
			at[a.Name] = len(o.Annotations)
			o.Annotations = append(o.Annotations, store.Annotation{Name: a.Name, Value: a.Value, Policy: l.branch})
		case l.req.Mode != Add && o.Annotations[i].Policy == l.branch:
			o.Annotations[i].Value = a.Value
		}
	}
}

// credentials gives a new user or host its API key, and stores the networks from
// which it may log in.
func (l *loader) credentials(rec policy.Record, fresh bool) error {
	id := string(rec.ID)
	if k := rec.ID.Kind(); k != "user" && k != "host" {
		return nil
	}
	c, err := l.tx.Credentials(id)
	if err != nil {
		return err
	}
	if c == nil {
		c = &store.Credentials{APIKey: NewAPIKey(), RotatedAt: l.req.Now}
	}
	if fresh {
		l.res.Created = append(l.res.Created, Created{Role: id, APIKey: string(c.APIKey)})
	}
	if fresh || l.req.Mode == Replace || l.req.Mode == Update && rec.RestrictedTo != nil {
		c.RestrictedTo = rec.RestrictedTo
	} else if l.req.Mode == Add {
		c.RestrictedTo = union(c.RestrictedTo, rec.RestrictedTo)
	}
	if fresh || l.req.Mode == Replace || l.req.Mode == Update && rec.PublicKeys != nil {
		c.PublicKeys = rec.PublicKeys
	}
	return l.tx.PutCredentials(id, c)
}

// union appends the items of b that a lacks.
func union(a, b []string) []string {
	have := map[string]bool{}
	for _, s := range a {
		have[s] = true
	}
	for _, s := range b {
		if !have[s] {
			have[s] = true
			a = append(a, s)
		}
	}
	return a
}
