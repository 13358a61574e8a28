package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

// TestStories plays what a user does with the tools: each file of
// testdata/script is a story of command lines, what they print, and the files
// that they work on.
func TestStories(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"edit": edit, "cluster": cluster, "exits": exits},
		Setup: func(env *testscript.Env) error {
			bin := filepath.Join(env.WorkDir, ".bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				return err
			}
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv(asCommand, "1")
			return os.Symlink(self, filepath.Join(bin, "syncer"))
		},
	})
}

// edit OLD NEW FROM TO writes a file as another with texts replaced, in which \n
// is the end of a line; "" as OLD appends.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: edit OLD NEW FROM TO")
	}
	text := ts.ReadFile(args[2])
	before, after := strings.ReplaceAll(args[0], `\n`, "\n"), strings.ReplaceAll(args[1], `\n`, "\n")
	if !strings.Contains(text, before) {
		ts.Fatalf("%s has no %q", args[2], before)
	}
	if before == "" {
		text += after
	} else {
		text = strings.ReplaceAll(text, before, after)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(text), 0o600))
}

// exits STATUS PROGRAM ARG... runs a program, which must end with a status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARG...")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d instead of %s", got, args[0])
	}
}

// cluster FOLDER answers GET of single objects as an API server does, each from
// a file NAMESPACE/RESOURCE/NAME.yaml of the folder, and writes the file
// kubeconfig, with the namespace shop.
func cluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cluster FOLDER")
	}
	dir := ts.MkAbs(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		object := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/")
		text, err := os.ReadFile(filepath.Join(dir, object+".yaml"))
		if err == nil {
			text, err = yaml.YAMLToJSON(text)
		}
		w.Header().Set("Content-Type", "application/json")
		if err != nil || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			text = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"kind":%q},"code":404}`, strings.Split(object+"//", "/")[1])
		}
		_, _ = w.Write(text)
	}))
	ts.Defer(server.Close)
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, namespace: shop}}]}`, server.URL)
	ts.Check(os.WriteFile(ts.MkAbs("kubeconfig"), []byte(kubeconfig), 0o600))
}
