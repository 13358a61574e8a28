package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestConjurdRekey has a server go over to a new data key while it is asked and
// killed at any moment, and once more while none serves.
func TestConjurdRekey(t *testing.T) {
	t.Parallel()
	w, flags := conjurdFolder(t)
	w.oneShot("init", 20)
	var policy, values strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&policy, "- !variable v%d\n", i)
		fmt.Fprintf(&values, "v%d: value-%d\n", i, i)
	}
	w.write(w.Path("more.yml"), policy.String())
	w.write(w.Path("more-values.yml"), values.String())
	spawn(t, nil, append([]string{"conjurd", "init", "--policy", w.Path("more.yml"), "--values", w.Path("more-values.yml")}, flags...)...).Exit(0)
	dir, key := w.Path("conjurd"), w.Path("conjurd", "data.key")
	reads := func() {
		t.Helper()
		if err := os.RemoveAll(w.Path("secrets", "db.json")); err != nil {
			t.Fatal(err)
		}
		w.start().Exit(0)
		if !strings.Contains(w.file("db.json"), w.Value["db/password"]) {
			t.Error("the value is not what was set")
		}
	}
	keys := func() []string {
		t.Helper()
		text, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	first := keys()

	server := w.conjurd("--dir", dir)
	w.logIn(dir)
	rekey := spawn(t, nil, "conjurd", "rekey", "--dir", dir)
	for range 5 {
		eventually(t, "a new key", func() bool { return keys()[0] != first[0] })
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		server.Signal(os.Kill)
		server.ExitCode()
		server = w.conjurd("--dir", dir)
	}
	reads()
	rekey.Exit(0)
	second := keys()
	if len(second) != 1 || second[0] == first[0] {
		t.Fatalf("there are %d keys, the first one is new: %v", len(second), second[0] != first[0])
	}
	reads()
	server.Stop()

	rekey = spawn(t, nil, "conjurd", "rekey", "--dir", dir)
	rekey.Exit(0)
	if third := keys(); len(third) != 1 || third[0] == second[0] || !strings.Contains(rekey.Log(), "need the old one") {
		t.Errorf("there are %d keys: %s", len(third), rekey.Log())
	}
	server = w.conjurd("--dir", dir)
	reads()
	server.Stop()
	if left, _ := filepath.Glob(w.Path("conjurd", "*.new")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	w.write(key, first[0]+"\n")
	old := spawn(t, nil, "conjurd", "--addr", "127.0.0.1:0", "--dir", dir)
	old.Exit(1)
	for _, p := range []string{rekey.Log(), server.Log(), old.Log()} {
		if strings.Contains(p, first[0]) || strings.Contains(p, second[0]) {
			t.Error("the output has a data key")
		}
	}
	refused := spawn(t, []string{"CONJUR_DATA_KEY=x"}, "conjurd", "rekey", "--dir", dir)
	refused.Exit(1)
	if !strings.Contains(refused.Log(), "CONJUR_DATA_KEY") {
		t.Errorf("with the key in the environment: %s", refused.Log())
	}
}
