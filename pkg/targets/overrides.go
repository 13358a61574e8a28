package targets

import "slices"

// Override returns the target with a decision for each entry that may have a
// node-specific variable. use decides whether the entry reads it. watch decides whether
// Syncer watches it.
func (t *Target) Override(use, watch func(id string) bool) *Target {
	settled := *t
	settled.Entries, settled.Overrides, settled.Watched = slices.Clone(t.Entries), map[string]string{}, nil
	for i, e := range t.Entries {
		if e.Override == "" {
			continue
		}
		settled.Overrides[e.Override] = e.Variable
		e.Override = ""
		switch own := t.Entries[i].Override; {
		case use(own):
			e.Variable, e.General = own, e.Variable
		case watch(own) && !slices.Contains(settled.Watched, own):
			settled.Watched = append(settled.Watched, own)
		}
		settled.Entries[i] = e
	}
	return &settled
}

// Uses reports whether an entry reads the node-specific variable now.
func (t *Target) Uses(override string) bool {
	return slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.General != "" && e.Variable == override })
}
