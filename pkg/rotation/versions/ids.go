package versions

import (
	"strings"
	"time"
)

// NewID returns an id for a version or a fence. It is higher than all ids of the set.
func (d *Document) NewID(now time.Time) string {
	const layout = "20060102t150405"
	id, newest := now.UTC().Format(layout), d.newest()
	if at, err := time.Parse(layout, newest); err == nil && id <= newest {
		id = at.Add(time.Second).Format(layout)
	}
	return id
}

// Predates reports whether the outside carries a later fence than all fences of the set.
// That happens after a restore of Conjur.
func (d *Document) Predates(fence string) bool {
	newest := d.newest()
	return newest == "" || Later(fence, newest)
}

func (d *Document) newest() (id string) {
	for _, v := range d.Versions {
		for _, other := range []string{v.ID, v.Fence} {
			if id == "" || Later(other, id) {
				id = other
			}
		}
	}
	return id
}

// Later reports whether the id a comes after b. Ids that a person chose come before all
// generated ones.
func Later(a, b string) bool {
	if second := isSecond(a); second != isSecond(b) {
		return second
	}
	return a > b
}

// isSecond reports whether an id has the form of NewID.
func isSecond(id string) bool {
	day, clock, _ := strings.Cut(id, "t")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return len(day) == 8 && len(clock) == 6 && digits(day) && digits(clock)
}
