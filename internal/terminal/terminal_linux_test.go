package terminal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/terminal"
)

// openTerminal returns both ends of a terminal of the kernel's, and its size is
// set.
func openTerminal(t *testing.T, width, height uint16) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	fd := int(outside.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	}
	if err == nil {
		inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return outside, inside
}

// shown returns what is written on a terminal.
func shown(t *testing.T, width, height uint16, write func(*terminal.Screen)) string {
	t.Helper()
	outside, inside := openTerminal(t, width, height)
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(outside) // which ends with an error when inside is closed
		text <- string(all)
	}()
	write(terminal.New(inside))
	if err := inside.Close(); err != nil {
		t.Error(err)
	}
	return strings.ReplaceAll(<-text, "\r\n", "\n")
}

var rows = []terminal.Row{
	{Cells: []string{"STATE", "TARGET"}},
	{Color: terminal.Red, Cells: []string{"failing", "file/db\x1b[2J\u202egpj"}},
}

func TestPlainWhereThereIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	s := terminal.New(&out)
	for range 2 {
		if err := s.Draw(s.Table(rows)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "STATE    TARGET\nfailing  file/db?[2J?gpj\n"
	if s.Live() || out.String() != want+want {
		t.Errorf("wrote %q", out.String())
	}
}

func TestInPlaceAndInColorOnATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	got := shown(t, 80, 24, func(s *terminal.Screen) {
		_ = s.Draw(s.Table(rows))
		_ = s.Draw([]string{"done"})
	})
	const want = "\r\x1b[JSTATE    TARGET\n\x1b[31mfailing\x1b[0m  file/db?[2J?gpj\n\x1b[2A\r\x1b[Jdone\n"
	if got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestNoColorsWhereNobodyWantsThem(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	if got := shown(t, 80, 24, func(s *terminal.Screen) { _ = s.Draw(s.Table(rows)) }); strings.Contains(got, "\x1b[31m") {
		t.Errorf("wrote %q", got)
	}
}

func TestBounds(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	const a, b, c = "0000\n", "0001\n", "0002\n"
	for _, test := range []struct {
		width, height uint16
		want          string // of three lines with four characters
	}{
		{5, 9, a + b + c}, {4, 9, a + b + c}, {3, 9, "00…\n00…\n00…\n"}, {1, 9, "…\n…\n…\n"}, {0, 9, a + b + c},
		{9, 5, a + b + c}, {9, 4, a + b + c}, {9, 3, a + "… and 2 more lines\n"}, {9, 2, "… and 3 more lines\n"},
		{9, 1, a + b + c}, {9, 0, a + b + c}, // nothing would be better
	} {
		got := shown(t, test.width, test.height, func(s *terminal.Screen) {
			var rows []terminal.Row
			for i := range 3 {
				rows = append(rows, terminal.Row{Cells: []string{fmt.Sprintf("%04d", i)}})
			}
			_ = s.Draw(s.Table(rows))
		})
		if want := "\r\x1b[J" + test.want; got != want {
			t.Errorf("%d x %d: wrote %q, want %q", test.width, test.height, got, want)
		}
	}
}

func TestLinesWithoutATableFit(t *testing.T) {
	got := shown(t, 9, 3, func(s *terminal.Screen) { _ = s.Draw([]string{"0", "1", "2"}) })
	if want := "\r\x1b[J0\n… and 2 more lines\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestWhatIsBeingDoneIsShownMeanwhile(t *testing.T) {
	outside, inside := openTerminal(t, 80, 24)
	var seen strings.Builder
	err := terminal.During(inside, "loading", func() error {
		for !strings.Contains(seen.String(), "loading, ") { // it is there before f ends
			some := make([]byte, 100)
			n, err := outside.Read(some)
			if err != nil {
				return err
			}
			seen.Write(some[:n])
		}
		return io.ErrUnexpectedEOF
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if err := inside.Close(); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(outside)
	if !strings.HasSuffix(string(rest), "\x1b[1A\r\x1b[J") {
		t.Errorf("it does not go away: %q, %q", seen.String(), rest)
	}
	synctest.Test(t, func(t *testing.T) { // in which no second passes
		outside, inside := openTerminal(t, 80, 24)
		if err := terminal.During(inside, "loading", func() error { return nil }); err != nil {
			t.Error(err)
		}
		if err := inside.Close(); err != nil {
			t.Error(err)
		}
		if got, _ := io.ReadAll(outside); len(got) > 0 {
			t.Errorf("of what ends at once, %q is shown", got)
		}
	})
	var plain bytes.Buffer
	if err := terminal.During(&plain, "loading", func() error { return nil }); err != nil || plain.Len() > 0 {
		t.Errorf("without a terminal: %v, %q", err, plain.String())
	}
}
