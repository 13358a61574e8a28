// Package policy reads Conjur's policy language: YAML whose tags say what each
// item is. It turns a text into statements with every id resolved, and knows
// nothing of what a server already holds.
package policy

// Statements is what one policy text says, by what is done with it.
type Statements struct {
	Records  []Record
	Grants   []Grant
	Permits  []Permit
	Revokes  []Grant
	Denies   []Permit
	Deletes  []Ref
	Warnings []string // for the answer; the text is valid all the same
}

// Deleting reports whether the text takes something away, which only an update
// may do.
func (s *Statements) Deleting() bool {
	return len(s.Revokes)+len(s.Denies)+len(s.Deletes) > 0
}

// Ref names a role or resource: "account:kind:id".
type Ref string

// Record declares a role, a resource, or what is both.
type Record struct {
	ID           Ref
	Owner        Ref
	Annotations  []Annotation
	RestrictedTo []string // networks; users and hosts only
	PublicKeys   []string // users only
	Layers       []Ref    // host factories only: of the hosts that they make
}

// Annotation is a name and a text on a record.
type Annotation struct{ Name, Value string }

// Grant makes, or in Revokes ends, each member's membership of each role.
type Grant struct {
	Roles   []Ref
	Members []Member
}

// Member is the receiving side of a Grant.
type Member struct {
	Role  Ref
	Admin bool // may grant the role on
}

// Permit gives, or in Denies takes, privileges on resources to roles.
type Permit struct {
	Roles      []Ref
	Privileges []string
	Resources  []Ref
}
