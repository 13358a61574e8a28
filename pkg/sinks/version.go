package sinks

import (
	"crypto/rand"
	"io/fs"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
)

const (
	dataLink   = "..data"                 // the symlink to the current version
	timeLayout = "..2006_01_02_15_04_05." // prefix of a version's name; random text follows
)

func newVersion(now time.Time) string { return now.UTC().Format(timeLayout) + rand.Text() }

// isVersion reports whether newVersion could have made the name.
func isVersion(name string) bool {
	if len(name) <= len(timeLayout) {
		return false
	}
	_, err := time.Parse(timeLayout, name[:len(timeLayout)])
	return err == nil && safefile.IsRandomText(name[len(timeLayout):])
}

// shape is the content of a directory target's folder. Names are sorted.
type shape struct {
	data     string                 // destination of ..data; "" if absent or not ours
	current  string                 // the same, if that version exists
	versions []string               // including the current one
	links    []string               // our symlinks, which lead to parts of the same name
	temps    []string               // temporary symlinks
	others   map[string]fs.FileMode // everything else, with its type
}

func scan(dir folder) (shape, error) {
	entries, err := dir.list()
	if err != nil {
		return shape{}, step("list the folder", err)
	}
	there := shape{others: map[string]fs.FileMode{}}
	for _, e := range entries {
		name, to := e.Name(), ""
		if e.Type() == fs.ModeSymlink {
			if to, err = dir.readlink(name); err != nil {
				return shape{}, step("read the symlink "+name, err)
			}
		}
		switch {
		case e.IsDir() && isVersion(name):
			there.versions = append(there.versions, name)
		case name == dataLink && isVersion(to):
			there.data = to
		case to == linkTo(name):
			there.links = append(there.links, name)
		case to != "" && safefile.IsTempName(name):
			there.temps = append(there.temps, name)
		default:
			there.others[name] = e.Type()
		}
	}
	if slices.Contains(there.versions, there.data) {
		there.current = there.data
	}
	return there, nil
}

// linkTo returns the destination of the symlink that shows a part.
func linkTo(name string) string { return dataLink + "/" + name }
