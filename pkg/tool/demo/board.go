package demo

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/secretsync/syncer/internal/terminal"
	"github.com/secretsync/syncer/pkg/targets"
)

// board shows the changes that arrived. On a terminal it is a table of the targets that
// is updated in place. Elsewhere it is one line for each change.
type board struct {
	screen *terminal.Screen
	out    io.Writer
	rows   []terminal.Row // the head, and one for each target
	counts map[targets.Key]int
}

func newBoard(out io.Writer, groups []group) *board {
	b := &board{screen: terminal.New(out), out: out, counts: map[targets.Key]int{}}
	b.rows = []terminal.Row{{Cells: []string{"TARGET", "WRITTEN", "TOOK", "LAST CHANGE", "BY"}}}
	for _, g := range groups {
		b.rows = append(b.rows, terminal.Row{Cells: []string{string(targets.FileKey(g.name)), "0", "", "", ""}})
	}
	return b
}

// arrived shows a change, with the time that it took.
func (b *board) arrived(o outcome, what string, took time.Duration) error {
	ms := fmt.Sprintf("%.0f ms", took.Seconds()*1000)
	if !b.screen.Live() {
		_, err := fmt.Fprintf(b.out, "%9s  %-44s %-11s by %s\n", ms, what, o.result.Key, o.item.Trigger)
		return err
	}
	b.counts[o.result.Key]++
	for i, row := range b.rows {
		b.rows[i].Color = 0
		if row.Cells[0] == string(o.result.Key) {
			b.rows[i] = terminal.Row{Color: terminal.Green, Cells: []string{row.Cells[0], strconv.Itoa(b.counts[o.result.Key]), ms, what, o.item.Trigger}}
		}
	}
	return b.screen.Draw(b.screen.Table(b.rows))
}
