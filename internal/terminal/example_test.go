package terminal_test

import (
	"os"

	"github.com/secretsync/syncer/internal/terminal"
)

func ExampleScreen_Table() {
	screen := terminal.New(os.Stdout)
	_ = screen.Draw(screen.Table([]terminal.Row{
		{Cells: []string{"STATE", "TARGET", "PROVEN"}},
		{Color: terminal.Red, Cells: []string{"failing", "file/db", "9m"}},
		{Color: terminal.Green, Cells: []string{"fresh", "file/web", "2s"}},
	}))
	// Output:
	// STATE    TARGET    PROVEN
	// failing  file/db   9m
	// fresh    file/web  2s
}
