//go:build long

package soak

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/world"
)

// pod contains the folders of a sidecar, and its files.
type pod struct {
	*conjur
	files []place
}

// groups are the annotations of the sidecar's groups, in the order of files.
var groups = map[string]string{
	"conjur-secrets.db":         "- user: db/user\n- password: db/password\n",
	"secret-file-format.db":     "json",
	"conjur-secrets.blob":       "- blob: blob\n",
	"conjur-secrets.env":        "- USER: db/user\n- TOKEN: token\n",
	"secret-file-format.env":    "dotenv",
	"conjur-secrets.single":     "- single: 'single,one'\n",
	"secret-file-format.single": "bash",
	"conjur-secrets.url":        "- user: db/user\n- password: db/password\n",
	"secret-file-format.url":    "template",
	"conjur-secrets.keys":       "- public: keys/public\n- private: keys/private\n",
	"secret-file-format.keys":   "directory",
	"conjur-secrets.guest":      "- token: token\n- guest: guest/one\n",
	"secret-file-format.guest":  "json",
	"conjur-secrets.guests":     "- one: guest/one\n- two: guest/two\n",
	"secret-file-format.guests": "directory",
}

// guests are variables that are revoked and restored. They are too few for the brake.
var guests = []string{"guest/one", "guest/two"}

// newPod makes a pod whose sidecar refreshes every second. The variable with a
// comma cannot be asked for in a batch.
func newPod(t testing.TB, c *conjur) *pod {
	t.Helper()
	p := &pod{conjur: c, files: []place{
		{"db.json", []string{"db/user", "db/password"}, `{"user":"%s","password":"%s"}`, true},
		{"blob.yaml", []string{"blob"}, `"blob": "%s"`, false},
		{"env.dotenv", []string{"db/user", "token"}, "USER=\"%s\"\nTOKEN=\"%s\"", false},
		{"single.bash", []string{"single,one"}, `export single="%s"`, true},
		{"url.out", []string{"db/user", "db/password"}, "EDIT db://%s:%s@EDIT", true},
		{"keys/public", []string{"keys/public"}, "%s", false},
		{"keys/private", []string{"keys/private"}, "%s", false},
		{"guest.json", []string{"token", "guest/one"}, `{"token":"%s","guest":"%s"}`, true},
		{"guests/one", []string{"guest/one"}, "%s", true},
		{"guests/two", []string{"guest/two"}, "%s", true},
	}}
	c.add("db/user", "db/password", "blob", "token", "single,one", "keys/public", "keys/private", "guest/one", "guest/two")
	p.template(true)
	return p
}

// start starts the sidecar.
func (p *pod) start(address string) *proctest.Process {
	p.Helper()
	maps.Copy(p.Annotations, groups)
	maps.Copy(p.Annotations, map[string]string{"exit-on-revoked": "false", "removal-grace": "1s", "server-address": address})
	p.Annotate()
	return p.Spawn(binary, p.Environ(), p.Flags()...)
}

// template edits the template atomically, like the kubelet. A broken template changes
// nothing.
func (p *pod) template(good bool) {
	p.Helper()
	text := "{{ .Nonsense"
	if good {
		text = strings.ReplaceAll(`EDIT db://{{ secret "user" }}:{{ secret "password" }}@EDIT`, editMark, fmt.Sprint(p.edit()))
	}
	world.Replace(p, p.Path("templates", "url.tpl"), text)
}

// lose deletes a file, like an application that has read it.
func (p *pod) lose() {
	p.Helper()
	f := pick(p.random, p.files)
	if !f.mayLack {
		return
	}
	if err := os.Remove(p.Path("secrets", f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
}

// request requests the missing files, and deletes the sentinel file of updates.
func (p *pod) request() {
	p.Helper()
	if err := os.WriteFile(p.Path("status", notify.RequestedFile), nil, 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.Remove(p.Path("status", notify.UpdatedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
}

// settle ends all faults, and waits until each file matches Conjur.
func (p *pod) settle(int) {
	p.Helper()
	p.template(true)
	p.revoke("guest/one", false)
	proctest.EventuallyNoError(p.TB, "what was revoked removed", func() error {
		if _, err := os.Lstat(p.Path("secrets", "guest.json")); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("guest.json is there (%v)", err)
		}
		return nil
	})
	p.restore(guests...)
	proctest.EventuallyNoError(p.TB, "the application's request taken up", func() error {
		if _, err := os.Lstat(p.Path("status", notify.RequestedFile)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there (%v)", notify.RequestedFile, err)
		}
		return nil
	})
	proctest.EventuallyNoError(p.TB, "each file as Conjur has it", p.current)
	proctest.EventuallyNoError(p.TB, "the change announced", func() error {
		if marks, _ := filepath.Glob(p.Path("status", ".untold-*")); len(marks) > 0 {
			return fmt.Errorf("%q", marks)
		}
		_, err := os.Stat(p.Path("status", notify.UpdatedFile))
		return err
	})
}

// current returns an error that names a file that does not match Conjur.
func (p *pod) current() error {
	for _, f := range p.files {
		content, err := os.ReadFile(p.Path("secrets", f.name))
		if err != nil {
			return err
		}
		if string(content) != p.due(f) {
			return fmt.Errorf("%s is not up to date", f.name)
		}
	}
	return nil
}

// read reads the files continuously until the returned function is called. It fails the test
// if a file is torn, or missing although it must exist.
func (p *pod) read() (end func()) {
	stopping, failed := make(chan struct{}), map[string]bool{}
	whole := map[string]string{} // file → the content checked last
	var readers []reader
	for _, f := range p.files {
		readers = append(readers, p.reader(f))
	}
	var reads int
	var ended sync.WaitGroup
	ended.Go(func() {
		looks := time.NewTicker(2 * time.Millisecond)
		defer looks.Stop()
		for {
			select {
			case <-stopping:
				return
			case <-looks.C:
			}
			r := readers[reads%len(readers)]
			reads++
			if err := p.look(r, whole); err != nil && !failed[r.p.name] {
				failed[r.p.name] = true
				p.Error(err)
			}
		}
	})
	end = sync.OnceFunc(func() { close(stopping); ended.Wait(); p.Logf("%d reads", reads) })
	p.Cleanup(end)
	return end
}

// look reads a file once. In a folder whose version is replaced between two
// steps of the kernel's way to the file, the second try meets the new one.
func (p *pod) look(r reader, whole map[string]string) error {
	path := p.Path("secrets", r.p.name)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.p.mayLack:
		return nil
	case err != nil:
		return err
	case string(content) == whole[r.p.name] && len(content) > 0:
		return nil
	}
	whole[r.p.name] = string(content)
	return r.check(string(content))
}

// remains are the names of all that is below a folder. The random name of a
// folder's version is "..VERSION".
func (p *pod) remains(folder string) (names []string) {
	p.Helper()
	err := filepath.WalkDir(p.Path(folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == p.Path(folder) {
			return err
		}
		name, err := filepath.Rel(p.Path(folder), path)
		for _, part := range strings.Split(name, "/") {
			if strings.HasPrefix(part, "..2") {
				name = strings.Replace(name, part, "..VERSION", 1)
			}
		}
		names = append(names, name)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// clean fails the test if the folders contain other files than expected.
func (p *pod) clean() {
	p.Helper()
	if err := os.Remove(p.Path("status", notify.UpdatedFile)); err != nil {
		p.Errorf("the last change was not announced: %v", err)
	}
	_ = os.Remove(p.Path("status", notify.AliveFile)) // it comes and goes
	for folder, want := range map[string][]string{
		"tmp":    nil,
		"status": {".boot", notify.ProvidedFile, "conjur-secrets-provided.sh", "conjur-secrets-unchanged.sh"},
		"secrets": {
			"blob.yaml", "db.json", "env.dotenv", "guest.json",
			"guests", "guests/..VERSION", "guests/..VERSION/one", "guests/..VERSION/two", "guests/..data", "guests/one", "guests/two",
			"keys", "keys/..VERSION", "keys/..VERSION/private", "keys/..VERSION/public", "keys/..data", "keys/private", "keys/public",
			"single.bash", "url.out",
		},
	} {
		if got := p.remains(folder); !slices.Equal(got, want) {
			p.Errorf("in the folder %s there are %q, want %q", folder, got, want)
		}
	}
}

func TestSidecar(t *testing.T) {
	t.Parallel()
	d, random := length(t), seeded(t)
	pod, address := newPod(t, newConjur(t, random)), proctest.FreeAddress(t)
	process := pod.start(address)
	proctest.EventuallyNoError(t, "the first delivery", pod.current)
	samples, endReads := observe(t, process, address), pod.read()

	s := &schedule{c: pod.conjur, calm: pod.settle}
	s.actions = []action{
		{"nothing", 20, func() {}},
		{"a value", 30, func() { pod.rotate(pod.any()) }},
		{"values together", 5, func() { pod.rotate("db/user", "db/password", "keys/public", "keys/private") }},
		{"template edited", 8, func() { pod.template(true) }},
		{"template broken", 2, func() { pod.template(false) }},
		{"file deleted", 10, pod.lose},
		{"files requested", 4, pod.request},
		{"revoked", 4, func() { pod.revoke(pick(random, guests), false) }},
		{"variable deleted", 2, func() { pod.revoke(pick(random, guests), true) }},
		{"restored", 4, func() { pod.restore(pick(random, guests)) }},
		{"outage", 5, s.breakDown},
	}
	s.run(d)
	samples.conclude(process, endReads, pod.current)
	pod.clean()
}
