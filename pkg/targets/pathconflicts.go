package targets

import (
	"fmt"
	"path/filepath"
)

// PathConflict is a group whose file cannot be written beside another's.
type PathConflict struct {
	Group, Other string
	Err          error // names both groups
}

// PathConflicts finds the targets that get in each other's way: two with one
// path, or one below another, which is either a file or a folder of its own.
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
