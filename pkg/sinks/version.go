package sinks

import (
	"crypto/rand"
	"io/fs"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/safefile"
)

const (
	dataLink   = "..data"                 // the symlink to the current version
	timeLayout = "..2006_01_02_15_04_05." // how the name of a version begins; random text follows
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

// shape is what the folder of a directory target holds. Names are sorted.
type shape struct {
	data     string                 // where ..data leads; "" when it is not there or not ours
	current  string                 // the same, when there is such a version
	versions []string               // with the current one
	links    []string               // the symlinks of ours that lead to a part of their name
	temps    []string               // temporary symlinks
	others   map[string]fs.FileMode // all else, and its type
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

// linkTo is where the symlink that shows a part leads.
func linkTo(name string) string { return dataLink + "/" + name }
