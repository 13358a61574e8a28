package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// change is one change, with a check for its arrival in the file.
type change struct {
	what  string
	there func() bool
}

// rotate gives one variable of one group a new value.
func (s *stage) rotate() (change, error) {
	s.rotations++
	group := s.world.groups[s.rotations%len(s.world.groups)]
	id := group.variable(s.rotations % len(names))
	value := randomValue()
	err := s.world.server.Set(context.Background(), id, value)
	return change{"rotated " + id, func() bool { return group.holds(value) }}, err
}

// editTemplate changes the template of the group that has one.
func (s *stage) editTemplate() (change, error) {
	mark := fmt.Sprintf("# template, edition %d", s.rotations+2)
	group := s.world.templated()
	err := s.world.writeTemplate(mark)
	return change{"edited template " + group.name + ".tpl", func() bool { return group.holds([]byte(mark)) }}, err
}

// revoke takes one variable away from the application, so that its file is removed.
func (s *stage) revoke() (change, error) {
	group := s.world.groups[0]
	id := group.variable(0)
	err := s.world.permit("!deny", id)
	return change{"revoked " + id, group.missing}, err
}

// restore gives the variable back, with its old value.
func (s *stage) restore() (change, error) {
	group := s.world.groups[0]
	id := group.variable(0)
	err := s.world.permit("!permit", id)
	return change{"restored " + id, func() bool { return !group.missing() }}, err
}

func (w *world) permit(tag, id string) error {
	statement := fmt.Sprintf("- %s\n  role: !host %s\n  privileges: [read, execute]\n  resource: !variable %s\n", tag, host, id)
	_, err := w.server.LoadPolicy(context.Background(), conjurd.Update, "root", strings.NewReader(statement))
	return err
}

// holds reports whether the group's file contains the text.
func (g group) holds(text []byte) bool {
	content, err := os.ReadFile(g.path)
	return err == nil && bytes.Contains(content, text)
}

// missing reports whether the group's file does not exist.
func (g group) missing() bool {
	_, err := os.Stat(g.path)
	return errors.Is(err, fs.ErrNotExist)
}
