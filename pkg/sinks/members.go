package sinks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/secretsync/syncer/pkg/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// Members and sets are remembered where the content itself is, so that they are
// there as long as it is: of a file in files beside it, and of a folder of files in
// files in it.

// memo is the files that have what is remembered of a target.
type memo struct {
	of  string // the target's name
	how manner
}

// What is remembered.
const (
	memoMembers = "variables"
	memoSets    = "sets"
)

// name is short enough whatever the target's name, and none of a target or a
// temporary file.
func (m memo) name(what string) string {
	sum := sha256.Sum256([]byte(m.of))
	return safefile.TempPrefix + what + "-" + hex.EncodeToString(sum[:16])
}

// read reads what is remembered into to. What cannot be read is not: the folder is
// the application's too.
func (m memo) read(dir folder, what string, to any) {
	info, err := dir.lstat(m.name(what))
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if text, whole, err := content(dir, m.name(what), info, maxSize); err == nil && whole {
		_ = json.Unmarshal(text.Bytes(), to)
	}
}

func (m memo) members(dir folder) (ids []string) {
	m.read(dir, memoMembers, &ids)
	return ids
}

func (m memo) sets(dir folder) (sets map[string]targets.DeliveredSet) {
	m.read(dir, memoSets, &sets)
	return sets
}

// write writes what is to be remembered, if it is not there already; nothing is
// removed.
func (m memo) write(dir folder, what string, text []byte) error {
	var is json.RawMessage
	if len(text) > 0 {
		if m.read(dir, what, &is); bytes.Equal(text, is) {
			return nil
		}
		_, err := replace(dir, m.name(what), text, m.how)
		return step("record the "+what+" in "+m.name(what), err)
	}
	info, err := dir.lstat(m.name(what))
	if err == nil && !info.IsDir() {
		err = dir.remove(m.name(what))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return step("record the "+what+" in "+m.name(what), err)
}

func (m memo) writeMembers(dir folder, ids []string) error {
	if len(ids) == 0 {
		return m.write(dir, memoMembers, nil)
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return m.write(dir, memoMembers, text)
}

// forget removes what is remembered.
func (m memo) forget(dir folder) error {
	return errors.Join(m.write(dir, memoMembers, nil), m.write(dir, memoSets, nil))
}

// note remembers what a content that stays as it is has; as far as c says.
func (m memo) note(dir folder, c Changes) error {
	var errs []error
	if c.Members != nil {
		errs = append(errs, m.writeMembers(dir, c.Members))
	}
	if c.Sets != nil {
		var text []byte
		if len(*c.Sets) > 0 {
			var err error
			text, err = json.Marshal(*c.Sets)
			errs = append(errs, err)
		}
		errs = append(errs, m.write(dir, memoSets, text))
	}
	return errors.Join(errs...)
}

// around makes a change of the content between two of the memo: a crash leaves
// too many members, never too few, and of a set a step that is too low, never
// too high.
func (m memo) around(dir folder, c Changes, change func() error) error {
	if c.Members != nil {
		both := slices.Concat(m.members(dir), c.Members)
		slices.Sort(both)
		if err := m.writeMembers(dir, slices.Compact(both)); err != nil {
			return err
		}
	}
	if err := change(); err != nil {
		return err
	}
	return m.note(dir, c)
}
