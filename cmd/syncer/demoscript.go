package main

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

// demoChange is one change that was made, and how to see it in its file.
type demoChange struct {
	what  string
	there func() bool
}

// rotate gives one variable of one group a new value.
func (s *demoStage) rotate() (demoChange, error) {
	s.turn++
	group := s.world.groups[s.turn%len(s.world.groups)]
	id := group.variable(s.turn % len(demoNames))
	value := randomValue()
	err := s.world.server.Set(context.Background(), id, value)
	return demoChange{"rotated " + id, func() bool { return group.holds(value) }}, err
}

// editTemplate changes the template of the group that has one.
func (s *demoStage) editTemplate() (demoChange, error) {
	mark := fmt.Sprintf("# template, edition %d", s.turn+2)
	group := s.world.templated()
	err := s.world.writeTemplate(mark)
	return demoChange{"edited template " + group.name + ".tpl", func() bool { return group.holds([]byte(mark)) }}, err
}

// revoke takes one variable away from the application: its file goes.
func (s *demoStage) revoke() (demoChange, error) {
	group := s.world.groups[0]
	id := group.variable(0)
	err := s.world.permit("!deny", id)
	return demoChange{"revoked " + id, group.missing}, err
}

// restore gives the variable back, with its old value.
func (s *demoStage) restore() (demoChange, error) {
	group := s.world.groups[0]
	id := group.variable(0)
	err := s.world.permit("!permit", id)
	return demoChange{"restored " + id, func() bool { return !group.missing() }}, err
}

func (w *demoWorld) permit(tag, id string) error {
	statement := fmt.Sprintf("- %s\n  role: !host %s\n  privileges: [read, execute]\n  resource: !variable %s\n", tag, demoHost, id)
	_, err := w.server.LoadPolicy(context.Background(), conjurd.Update, "root", strings.NewReader(statement))
	return err
}

// holds tells whether the group's file has the text in it.
func (g demoGroup) holds(text []byte) bool {
	content, err := os.ReadFile(g.path)
	return err == nil && bytes.Contains(content, text)
}

// missing tells whether the group's file is not there.
func (g demoGroup) missing() bool {
	_, err := os.Stat(g.path)
	return errors.Is(err, fs.ErrNotExist)
}
