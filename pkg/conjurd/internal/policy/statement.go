// Package policy parses Conjur's policy language: YAML whose tags give the type of
// each item. It turns a text into statements with resolved ids. It does not know
// the state of a server.
package policy

// Statements holds the statements of one policy text, by effect.
type Statements struct {
	Records  []Record
	Grants   []Grant
	Permits  []Permit
	Revokes  []Grant
	Denies   []Permit
	Deletes  []Ref
	Warnings []string // for the answer; the text is valid nevertheless
	mentions map[Ref]place
}

// NotFound returns the error for a reference to an object that does not exist.
func (s *Statements) NotFound(ref Ref) *Error {
	return &Error{Message: ref.NotFound(), mention: s.mentions[ref]}
}

// Deleting reports whether the text removes anything, which requires an update.
func (s *Statements) Deleting() bool {
	return len(s.Revokes)+len(s.Denies)+len(s.Deletes) > 0
}

// Ref names a role or resource: "account:kind:id".
type Ref string

// Record declares a role, a resource, or an object that is both.
type Record struct {
	ID           Ref
	Owner        Ref
	Annotations  []Annotation
	RestrictedTo []string // networks; users and hosts only
	PublicKeys   []string // users only
	Layers       []Ref    // host factories only: layers of the hosts that they create
}

// Annotation is a name and a text on a record.
type Annotation struct{ Name, Value string }

// Grant creates the membership of each member in each role. In Revokes it ends the
// membership.
type Grant struct {
	Roles   []Ref
	Members []Member
}

// Member is the receiving side of a Grant.
type Member struct {
	Role  Ref
	Admin bool // may grant the role to others
}

// Permit grants privileges on resources to roles. In Denies it removes them.
type Permit struct {
	Roles      []Ref
	Privileges []string
	Resources  []Ref
}
