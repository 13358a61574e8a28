package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
)

func TestChangedValueReachesItsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cases := []struct{ format, file, content string }{
		{"yaml", "yaml.yaml", `"password": "%s"`},
		{"json", "json.json", `{"password":"%s"}`},
		{"dotenv", "dotenv.dotenv", `password="%s"`},
		{"bash", "bash.bash", `export password="%s"`},
		{"properties", "properties.properties", `password="%s"`},
		{"template", "template.out", `<%s>`},
	}
	for _, c := range cases {
		w.Group(c.format, c.format, c.format+"/password")
	}
	w.template("template", `<{{ secret "password" }}>`)
	p := w.start()
	w.awaitProvided()
	for _, c := range cases {
		want := fmt.Sprintf(c.content, w.Renew(c.format+"/password"))
		eventually(t, "the new value as "+c.format, func() bool { return w.file(c.file) == want })
		w.awaitUpdated()
	}
	p.Stop()
}

// TestConfigMapSwapIsSeenWithoutPoll changes a template as the kubelet does:
// the file is a symlink to ..data/, itself a symlink that is replaced.
func TestConfigMapSwapIsSeenWithoutPoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Annotations["secrets-refresh-interval"] = "1h"
	w.Group("web", "template", "web/password")
	swap := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(w.Path("templates", version), 0o755); err != nil {
			t.Fatal(err)
		}
		w.write(w.Path("templates", version, "web.tpl"), text)
		if err := os.Symlink(version, w.Path("templates", "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(w.Path("templates", "..data_tmp"), w.Path("templates", "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("..version_1", `first {{ secret "password" }}`)
	if err := os.Symlink("..data/web.tpl", w.Path("templates", "web.tpl")); err != nil {
		t.Fatal(err)
	}
	p := w.start()
	w.awaitProvided()
	swap("..version_2", `second {{ secret "password" }}`)
	w.await("web.out", "second "+w.Value["web/password"])
	swap("..version_3", `third {{ secret "password" }}`)
	w.await("web.out", "third "+w.Value["web/password"])
	p.Stop()
}

func TestDamagedResultIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Group("other", "json", "other/password")
	p := w.start()
	w.awaitProvided()
	name := w.Path("secrets", "db.json")
	whole := w.file("db.json")
	damages := []struct {
		name string
		do   func() error
		told bool // not of what is only back: who deletes what it has read would be told for ever
	}{
		{"deleted", func() error { return os.Remove(name) }, false},
		{"overwritten", func() error { return os.WriteFile(name, []byte("something else"), 0o600) }, true},
		{"emptied", func() error { return os.Truncate(name, 0) }, true},
		{"opened to all", func() error { return os.Chmod(name, 0o666) }, true},
	}
	other := w.look()[w.Path("secrets", "other.json")]
	for _, d := range damages {
		if err := d.do(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the file as it was, after it was "+d.name, func() bool {
			info, err := os.Stat(name)
			return err == nil && info.Mode() == 0o644 && w.file("db.json") == whole
		})
		if d.told {
			w.awaitUpdated()
		}
	}
	if w.look()[w.Path("secrets", "other.json")] != other {
		t.Error("the other file was touched")
	}
	p.Stop()
}

func TestFiveFilesAreOneUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids, files []string
	for i := range 5 {
		name := fmt.Sprintf("group%d", i)
		w.Group(name, "json", name+"/password")
		ids, files = append(ids, name+"/password"), append(files, name+".json")
	}
	p := w.start()
	w.awaitProvided()
	const times = 3
	for range times {
		now := time.Now()
		if err := os.Chtimes(w.Path("secrets", files[0]), now, now); err != nil { // it has to be looked at
			t.Fatal(err)
		}
		w.Renew(ids...)
		eventually(t, notify.UpdatedFile, func() bool { return w.exists("status", notify.UpdatedFile) })
		for i, file := range files {
			if !strings.Contains(w.file(file), w.Value[ids[i]]) {
				t.Errorf("%s is there, but %s has not its new value", notify.UpdatedFile, file)
			}
		}
		w.awaitUpdated()
	}
	w.beat() // an announcement too many would come about now
	w.beat()
	p.Stop()
	if told := p.Lines("Sentinel file written", notify.UpdatedFile); len(told) != times {
		t.Errorf("%d changes were announced %d times", times, len(told))
	}
	if w.exists("status", notify.UpdatedFile) {
		t.Errorf("%s came once more", notify.UpdatedFile)
	}
}
