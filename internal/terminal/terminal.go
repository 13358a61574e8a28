// Package terminal writes output for people: with colors and updates in place on a
// terminal, and as plain lines elsewhere.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/brief"
)

// Screen is an output. Create it with New. It must not be used concurrently.
type Screen struct {
	w             io.Writer
	file          *os.File // nil unless it is a terminal
	colors        bool
	drawn         int // lines that are on the terminal
	width, height int
}

// New returns a Screen that writes to w. It uses colors on a terminal, unless the
// environment variable NO_COLOR is set.
func New(w io.Writer) *Screen {
	s := &Screen{w: w}
	if f, ok := w.(*os.File); ok {
		if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			s.file, s.colors = f, os.Getenv("NO_COLOR") == ""
		}
	}
	return s
}

// Live reports whether the output is a terminal, on which Draw updates in place.
func (s *Screen) Live() bool { return s.file != nil }

// Color is a terminal color, as the number of its escape sequence.
type Color int

// The colors. The zero Color is the terminal's default.
const (
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
	Blue    Color = 34
	Magenta Color = 35
)

// Row is a line of a table. The Color applies to its first cell.
type Row struct {
	Color Color
	Cells []string
}

// Table arranges rows in columns. On a terminal it truncates long lines. It
// replaces control characters in cells.
func (s *Screen) Table(rows []Row) []string {
	s.measure()
	var widths []int
	for r, row := range rows {
		for i, cell := range row.Cells {
			rows[r].Cells[i] = Plain(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(rows[r].Cells[i]))
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var line strings.Builder
		for i, cell := range row.Cells {
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		text := []rune(strings.TrimRight(line.String(), " "))
		if s.width > 0 && len(text) > s.width {
			text = append(text[:s.width-1], '…')
		}
		first := min(utf8.RuneCountInString(row.Cells[0]), len(text))
		lines[r] = s.paint(row.Color, string(text[:first])) + string(text[first:])
	}
	return lines
}

func (s *Screen) paint(c Color, text string) string {
	if !s.colors || c == 0 {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// Columns returns a writer that aligns cells, which a tab separates. Flush it at the end.
func Columns(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// Plain returns a text without terminal control. A question mark replaces each
// control or formatting character.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '?'
		}
		return r
	}, text)
}

// Draw writes lines. On a terminal they replace the previously drawn lines, and
// lines that do not fit are omitted.
func (s *Screen) Draw(lines []string) error {
	var text strings.Builder
	if s.Live() {
		s.measure()
		if room := s.height - 1; len(lines) > room && room > 0 {
			lines = append(lines[:room-1:room-1], "… and "+brief.Count(len(lines)-room+1, "more line"))
		}
		if s.drawn > 0 {
			fmt.Fprintf(&text, "\x1b[%dA", s.drawn) // move up
		}
		text.WriteString("\r\x1b[J") // clear everything below
		s.drawn = len(lines)
	}
	for _, line := range lines {
		text.WriteString(line + "\n")
	}
	_, err := io.WriteString(s.w, text.String())
	return err
}

// During calls f. On a terminal, after one second, it shows the activity and its
// duration. f must not write to w.
func During(w io.Writer, what string, f func() error) error {
	s := New(w)
	if !s.Live() {
		return f()
	}
	began := time.Now()
	stop := EachSecond(func() {
		_ = s.Draw(s.Table([]Row{{Cells: []string{fmt.Sprintf("%s, %v", what, time.Since(began).Round(time.Second))}}}))
	})
	err := f()
	stop()
	if s.drawn > 0 {
		_ = s.Draw(nil) // ignore the error: only the display is lost
	}
	return err
}

// EachSecond calls show once a second until the caller calls stop. stop waits for a
// call in progress.
func EachSecond(show func()) (stop func()) {
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				show()
			}
		}
	})
	return func() { close(done); shown.Wait() }
}

// measure reads the size of the terminal, which may change.
func (s *Screen) measure() {
	if !s.Live() {
		return
	}
	if size, err := unix.IoctlGetWinsize(int(s.file.Fd()), unix.TIOCGWINSZ); err == nil {
		s.width, s.height = int(size.Col), int(size.Row)
	}
}
