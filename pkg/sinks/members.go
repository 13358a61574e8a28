package sinks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// Members and sets are recorded next to the content, so that they exist as long as
// it does. For a file, they are in files next to it. For a folder of files, they
// are in files inside it.

// memo accesses the files with a target's members and sets.
type memo struct {
	of  string // name of the target
	how manner
}

// The kinds of records.
const (
	memoMembers = "variables"
	memoSets    = "sets"
)

// name returns a file name that fits every target's name, and differs from targets
// and temporary files.
func (m memo) name(what string) string {
	sum := sha256.Sum256([]byte(m.of))
	return safefile.TempPrefix + what + "-" + hex.EncodeToString(sum[:16])
}

// readRecord reads a record into to. It ignores an unreadable record, because the
// application can also write to the folder.
func (m memo) readRecord(dir folder, what string, to any) {
	info, err := dir.lstat(m.name(what))
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if text, whole, err := content(dir, m.name(what), info, maxSize); err == nil && whole {
		_ = json.Unmarshal(text.Bytes(), to)
	}
}

func (m memo) members(dir folder) (ids []string) {
	m.readRecord(dir, memoMembers, &ids)
	return ids
}

func (m memo) sets(dir folder) (sets map[string]targets.DeliveredSet) {
	m.readRecord(dir, memoSets, &sets)
	return sets
}

// write writes a record, unless it exists already. An empty text removes the
// record.
func (m memo) write(dir folder, what string, text []byte) error {
	var is json.RawMessage
	if len(text) > 0 {
		if m.readRecord(dir, what, &is); bytes.Equal(text, is) {
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

// forget removes all records.
func (m memo) forget(dir folder) error {
	return errors.Join(m.write(dir, memoMembers, nil), m.write(dir, memoSets, nil))
}

// writeRecords writes the records that c sets, for unchanged content.
func (m memo) writeRecords(dir folder, c Changes) error {
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

// around runs change between two updates of the records. After a crash the recorded
// members may be too many, never too few. The recorded step of a set may be too
// low, never too high.
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
	return m.writeRecords(dir, c)
}
