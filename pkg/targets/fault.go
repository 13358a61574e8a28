package targets

// Fault is a problem of a Secret's definition, or only a doubt about it.
type Fault struct {
	Place string // an annotation, or ConjurMapKey
	Why   string // and what to do
}

// String returns the place, a colon, and the reason.
func (f Fault) String() string { return f.Place + ": " + f.Why }

// Texts returns the texts of faults.
func Texts(faults []Fault) (texts []string) {
	for _, f := range faults {
		texts = append(texts, f.String())
	}
	return texts
}
