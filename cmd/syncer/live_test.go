package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/length"
	"github.com/secretsync/syncer/test/proctest"
)

var liveRotations = length.Flag("rotations", 20, 5, "how many rotations signers and verifiers of tokens live through")

// The times of the live proof are a hundredth of what they are in a cluster.
const (
	lateness  = 900 * time.Millisecond // of files: a kubelet's 90 s
	tokenLife = 900 * time.Millisecond
	liveKeep  = 5 * time.Second // more than a life, by what a busy machine makes of it
)

// live is a key set that is rotated without pause, and five programs that sign
// and verify tokens with it. What they read comes from the folder that a sidecar
// writes, each by a kubelet of its own, late.
type live struct {
	*world
	peers  []*peer
	client *http.Client
}

// peer is one of the programs.
type peer struct {
	folder, url string
}

func newLive(t *testing.T) *live {
	t.Helper()
	program := filepath.Join(t.TempDir(), "jwt")
	if err := gobuild.Build(program, "../../deploy/examples/keysets", "./jwt"); err != nil {
		t.Fatal(err)
	}
	l := &live{world: newWorld(t), client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	l.Server.Policy(`
- !variable jwt
- !variable jwt/control
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable jwt, !variable jwt/control] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable jwt }
`)
	for i := range 5 {
		p := &peer{folder: l.Path(fmt.Sprint("peer", i))}
		if err := os.Mkdir(p.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		address := proctest.FreeAddress(t)
		p.url = "http://" + address
		l.peers = append(l.peers, p)
	}
	l.Annotations["conjur-secrets.keys"] = `- "*": {keys: jwt}`
	l.Annotations["secret-file-format.keys"] = "directory"

	l.rotates("--once", "confirm: {wait: 0s}") // the first key
	l.start()
	ctx, cancel := context.WithCancel(context.Background())
	var kubelets sync.WaitGroup
	t.Cleanup(func() { cancel(); kubelets.Wait() })
	for _, p := range l.peers {
		eventually(t, "the first key", func() bool { return p.sync(l.Path("secrets", "keys")) == nil })
		kubelets.Go(func() { p.kubelet(ctx, l.Path("secrets", "keys")) })
		proctest.Start(t, exec.Command(program, "--keys", p.folder, "--address", strings.TrimPrefix(p.url, "http://"), "--life", tokenLife.String()), nil)
	}
	for _, p := range l.peers {
		eventually(t, "a program that answers", func() bool { _, err := l.post(p.url+"/token", ""); return err == nil })
	}
	return l
}

// rotates starts what rotates the set.
func (l *live) rotates(flag, confirm string) *proctest.Process {
	l.Helper()
	file := l.Path("rotate.yaml")
	l.write(file, fmt.Sprintf(`
rotation:
  interval: 1s
  perHour: 1000000
  sets:
  - set: jwt
    generate: {random: 32}
    every: 1s
    keep: %s
    %s
`, liveKeep, confirm))
	args := []string{"rotate", "run", "--config", file}
	if flag != "" {
		args = append(args, flag)
	}
	p := spawn(l, proctest.Environ(l.Server.Env("rotates")), args...)
	if flag != "" {
		p.Exit(0)
	}
	return p
}

// kubelet brings what is in a folder to a program, late, and each time later by
// another span.
func (p *peer) kubelet(ctx context.Context, from string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rand.Int64N(int64(lateness)))):
		}
		_ = p.sync(from) // else the next time
	}
}

// sync exchanges a program's folder for what is in another one, as a kubelet
// does.
func (p *peer) sync(from string) error {
	source, err := filepath.EvalSymlinks(filepath.Join(from, "..data"))
	if err != nil {
		return err
	}
	revision := ".." + filepath.Base(source)
	link := filepath.Join(p.folder, "..data")
	old, _ := os.Readlink(link)
	if old == revision {
		return nil
	}
	next := filepath.Join(p.folder, revision)
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.CopyFS(next, os.DirFS(source)); err != nil {
		return err
	}
	if err := os.Symlink(revision, link+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(link+"_tmp", link); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(p.folder, old))
}

// post posts again, over a new connection, if the first one fails: a program closes a
// connection without a request after 5 s, which pass on a busy machine.
func (l *live) post(url, body string) (string, error) {
	resp, err := l.client.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		resp, err = l.client.Post(url, "text/plain", strings.NewReader(body))
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(text))
	}
	return string(text), err
}

// tally is what came of tokens.
type tally struct {
	mu       sync.Mutex
	keys     map[string]bool // that signed
	verified int
	late     int // verified at the end of a token's life
	rejected []string
}

func (y *tally) note(late bool, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	switch {
	case err == nil:
		y.verified++
		if late {
			y.late++
		}
	case strings.Contains(err.Error(), "it has expired"): // this machine is slow
	default:
		y.rejected = append(y.rejected, err.Error())
	}
}

// signers returns how many keys have signed, and whether nothing was rejected.
func (y *tally) signers() (n int, well bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.keys), len(y.rejected) == 0
}

// exchange has each program sign in turn and all verify, at once and again at
// the end of the token's life, until enough has been seen.
func (l *live) exchange(enough func(*tally) bool) *tally {
	l.Helper()
	y := &tally{keys: map[string]bool{}}
	var checks sync.WaitGroup
	defer checks.Wait()
	verify := func(late bool, token string) {
		for _, p := range l.peers {
			_, err := l.post(p.url+"/verify", token)
			y.note(late, err)
		}
	}
	end := time.Now().Add(proctest.Patience + time.Duration(liveRotations())*30*time.Second)
	for i := 0; !enough(y); i++ {
		if time.Now().After(end) {
			n, _ := y.signers()
			l.Fatalf("after %d rotations nothing more is seen", n-1)
		}
		token, err := l.post(l.peers[i%len(l.peers)].url+"/token", "")
		if err != nil {
			l.Fatal(err)
		}
		signed := time.Now()
		head, _, _ := strings.Cut(token, ".")
		y.mu.Lock()
		y.keys[head] = true
		y.mu.Unlock()
		checks.Go(func() {
			verify(false, token)
			time.Sleep(time.Until(signed.Add(tokenLife * 9 / 10)))
			verify(true, token)
		})
		time.Sleep(50 * time.Millisecond)
	}
	return y
}

// No token is rejected while keys are rotated without pause, whoever signed it and
// however late the files are.
func TestTokensLiveThroughRotations(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	var ask []string
	for _, p := range l.peers {
		ask = append(ask, p.url+"/keys")
	}
	engine := l.rotates("", "confirm: {ask: ["+strings.Join(ask, ", ")+"]}")
	y := l.exchange(func(y *tally) bool {
		n, well := y.signers()
		return n > liveRotations() || !well
	})
	n, _ := y.signers()
	t.Logf("%d rotations, %d tokens verified, %d of them at the end of their lives", n-1, y.verified, y.late)
	if len(y.rejected) > 0 || y.late == 0 {
		t.Errorf("%d were rejected: %.2000q", len(y.rejected), y.rejected)
	}
	engine.Signal(os.Interrupt)
	engine.Exit(0)
}

// The same without asking anybody first: a key signs that others do not have.
func TestTokensAreRejectedWithoutTheFirstGate(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.rotates("", "confirm: {wait: 0s}")
	y := l.exchange(func(y *tally) bool {
		_, well := y.signers()
		return !well
	})
	if !strings.Contains(y.rejected[0], "there is no key") {
		t.Errorf("rejected for another reason: %s", y.rejected[0])
	}
}
