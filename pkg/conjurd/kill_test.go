package conjurd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// writerEnv makes this test binary a process that writes until it is killed.
const writerEnv = "CONJURD_TEST_WRITE_TO"

const killVariables = 5

var killKey = bytes.Repeat([]byte{3}, 32)

// openKill opens the data file that is killed again and again.
func openKill(path string) (*Server, error) {
	return Open(Options{Account: "dev", Data: path, DataKey: killKey, Create: true})
}

// writeForEver sets one or several variables to the next number and says so
// on standard output once that is acknowledged.
func writeForEver(path string) {
	s, err := openKill(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	next, err := strconv.Atoi(os.Getenv(writerEnv + "_FROM"))
	if err != nil {
		os.Exit(1)
	}
	for ; ; next++ {
		value := []byte(strconv.Itoa(next))
		all := map[string][]byte{}
		for i := range killVariables {
			all[fmt.Sprintf("v%d", i)] = value
		}
		fmt.Println("try", next)
		if err := s.SetMany(context.Background(), all); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("done", next)
	}
}

// A server killed at any moment of some 500 writes has, when it starts again,
// all that was acknowledged, nothing that was not begun, and no half of a
// set.
func TestKilledServerLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s, err := openKill(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range killVariables {
		loadRoot(t, s, fmt.Sprintf("- !variable v%d\n", i))
		set(t, s, fmt.Sprintf("v%d", i), "0")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	done := 0
	for round := 0; done < 500; round++ {
		tried, acknowledged := killWriter(t, path, done+1, 1+rand.IntN(40))
		got := readBack(t, path)
		if got < acknowledged || got > tried {
			t.Fatalf("round %d: the value is %d, but %d was acknowledged and %d the last to be tried", round, got, acknowledged, tried)
		}
		done = max(done, got)
	}
}

// killWriter lets a process write until it has acknowledged some writes, and
// kills it somewhere in a later one. It tells the last numbers tried and
// acknowledged.
func killWriter(t *testing.T, path string, from, writes int) (tried, acknowledged int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), writerEnv+"="+path, writerEnv+"_FROM="+strconv.Itoa(from))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged = from - 1
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Errorf("the writer says %q", lines.Text())
		}
		if word == "try" {
			tried = n
			if n == from+writes { // it is now in the middle of this one
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
			continue
		}
		acknowledged = n
	}
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("the writer ended by itself: %s", &stderr)
	}
	return tried, acknowledged
}

// readBack opens the data and gives the number that all variables have.
func readBack(t *testing.T, path string) int {
	t.Helper()
	s, err := openKill(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var ids []string
	for i := range killVariables {
		ids = append(ids, fmt.Sprintf("v%d", i))
	}
	all := values(t, s, ids...)
	for _, v := range all {
		if v != all[0] {
			t.Fatalf("half of a set: %q", all)
		}
	}
	n, err := strconv.Atoi(all[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
