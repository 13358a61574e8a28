package main

import (
	"os"
	"strings"
	"testing"
)

func TestDiffNamesAliasesAndNeverValues(t *testing.T) {
	dir := toolFolder(t)
	shared := []string{"--annotations", dir + "/annotations", "--templates-dir", dir + "/templates", "--values", dir + "/values.json"}
	diff := func(want int) string {
		t.Helper()
		out, errs, status := tool(t, "", append([]string{"diff", "--secrets-dir", dir + "/out"}, shared...)...)
		if status != want || strings.Contains(out+errs, "canary") {
			t.Fatalf("status %d, want %d: %s%s", status, want, out, errs)
		}
		return out
	}
	if err := os.Mkdir(dir+"/out", 0o755); err != nil {
		t.Fatal(err)
	}
	if out := diff(1); out != "file/db: missing\nfile/web: missing\n" {
		t.Errorf("before anything is there: %q", out)
	}
	if _, errs, status := tool(t, "", append([]string{"render", "--out", dir + "/out"}, shared...)...); status != 0 {
		t.Fatal(errs)
	}
	if out := diff(0); out != "" {
		t.Errorf("when all is there: %q", out)
	}
	for _, change := range []struct {
		text, want string
		mode       os.FileMode
	}{
		{"user=\"canary-user\"\npassword=\"old\"", "file/db: content: password\n", 0o644},
		{"user=\"canary-user-2\"\npassword=\"canary-pass\"", "file/db: content: user\n", 0o644},
		{"xuser=\"canary-user\"\npassword=\"canary-pass\"", "file/db: content: user\n", 0o644},
		{"user=\"canary-user\"\npassword=\"canary-pass\"", "file/db: mode\n", 0o600},
	} {
		path := dir + "/out/db.dotenv"
		if err := os.WriteFile(path, []byte(change.text), change.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, change.mode); err != nil {
			t.Fatal(err)
		}
		if out := diff(1); out != change.want {
			t.Errorf("with %q and mode %v: %q, want %q", change.text, change.mode, out, change.want)
		}
	}
}

func TestDiffThatFailsHasStatus2(t *testing.T) {
	dir := toolFolder(t)
	if _, _, status := tool(t, "", "diff", "--annotations", dir+"/annotations", "--templates-dir", dir+"/templates",
		"--values", dir+"/nope.json", "--secrets-dir", dir); status != 2 {
		t.Errorf("status %d, want 2", status)
	}
	if _, _, status := tool(t, "", "diff", "--nope"); status != 2 {
		t.Errorf("status %d of a bad flag, want 2", status)
	}
}
