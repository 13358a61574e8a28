package targets

import (
	"fmt"
	"path/filepath"
)

// PathConflict is a group whose file conflicts with the file of another group.
type PathConflict struct {
	Group, Other string
	Err          error // names both groups
}

// PathConflicts finds conflicting targets. Two targets conflict if they have the same
// path. They also conflict if one is below another, and the other is a file or a separate
// folder.
func PathConflicts(ts []*Target) []PathConflict {
	var conflicts []PathConflict
	owner := map[string]string{} // path → group
	for _, t := range ts {
		if first, ok := owner[t.File.Path]; ok {
			conflicts = append(conflicts, PathConflict{t.Group, first, fmt.Errorf("the groups %q and %q have the same path %q; give one of them another", first, t.Group, t.File.Path)})
			continue
		}
		owner[t.File.Path] = t.Group
	}
	for _, t := range ts {
		for dir := filepath.Dir(t.File.Path); dir != "."; dir = filepath.Dir(dir) {
			if other, ok := owner[dir]; ok {
				conflicts = append(conflicts, PathConflict{t.Group, other, fmt.Errorf("%.300q of the group %q is below %q, where the group %q has its own file or folder", t.File.Path, t.Group, dir, other)})
			}
		}
	}
	return conflicts
}
