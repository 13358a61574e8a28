package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/pipeline/rotators"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// keySet is the set of the demonstration; rotates is the host that rotates it.
const (
	keySet  = "apps/shop/jwt"
	rotates = "rotates"
)

const rotationPolicy = `
- !host app
- !host rotates
- !policy
  id: apps/shop
  body:
  - !variable jwt
  - !variable jwt/control
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable apps/shop/jwt, !variable apps/shop/jwt/control] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable apps/shop/jwt }
`

// Rotate starts a server, two programs and the rotator of a key set. The key set is
// delivered to both programs, which continuously sign and verify tokens with it. Rotate
// requests a new key, and writes the events. The error describes a problem, such as a
// rejected token.
func Rotate(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*longest)
	defer cancel()
	s, err := newShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	narrator := &narration{out: out, begin: time.Now(), stop: cancel}
	rotator, closing, err := s.rotator(narrator)
	if err != nil {
		return err
	}
	defer closing()
	delivery, err := s.world.config()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var deliveryErr error
	all.Go(func() { rotator.Run(running) })
	all.Go(func() {
		deliveryErr = pipeline.Run(running, delivery, pipeline.Parts{Workers: 2, Grace: 5 * time.Second, Log: zap.NewNop()})
	})
	all.Go(func() { s.work(running) })
	played := s.play(running, narrator)
	stop()
	all.Wait()
	signed, rejected := s.tokens()
	switch {
	case narrator.err != nil:
		return narrator.err
	case errors.Join(played, deliveryErr) != nil:
		return errors.Join(played, deliveryErr)
	case len(rejected) > 0:
		return fmt.Errorf("%d of %d tokens were rejected: %s", len(rejected), signed, rejected[0])
	}
	_, err = fmt.Fprintf(out, "\n%d tokens were signed and checked meanwhile, and none was rejected.\n", signed)
	return err
}

// shop is the server and the two programs.
type shop struct {
	*world
	programs []*program
	client   *conjur.Client // as the host that rotates
	rotation config.Rotation

	mu       sync.Mutex
	signed   int
	rejected []string
}

func newShop(ctx context.Context) (_ *shop, err error) {
	s := &shop{world: &world{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "syncer-demo-"); err != nil {
		return nil, err
	}
	if s.server, err = conjurd.Open(conjurd.Options{Account: account}); err != nil {
		return nil, err
	}
	if _, err = s.server.LoadPolicy(ctx, conjurd.Add, "root", strings.NewReader(rotationPolicy)); err != nil {
		return nil, err
	}
	if err = s.serve(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{"api", "web"} {
		p, err := newProgram(filepath.Join(s.dir, "secrets", name), name)
		if err != nil {
			return nil, err
		}
		s.programs = append(s.programs, p)
	}
	return s, errors.Join(s.write(), s.load(ctx))
}

// write writes the files that a Pod with both programs would have, and the configuration
// of the rotator.
func (s *shop) write() error {
	annotations := "conjur.org/container-mode=\"sidecar\"\nconjur.org/secrets-destination=\"file\"\nconjur.org/secrets-refresh-interval=\"1s\"\n"
	var ask []string
	for _, p := range s.programs {
		annotations += fmt.Sprintf("conjur.org/conjur-secrets.%[1]s=%[2]q\nconjur.org/secret-file-format.%[1]s=\"directory\"\n", p.name, `- "*": {keys: `+keySet+`}`)
		ask = append(ask, p.url())
	}
	rotation := fmt.Sprintf("rotation:\n  interval: 1s\n  sets:\n  - set: %s\n    generate: {random: 32}\n    keep: 2s\n    confirm: {ask: [%s]}\n", keySet, strings.Join(ask, ", "))
	return errors.Join(
		os.MkdirAll(filepath.Join(s.dir, "secrets"), 0o700),
		os.WriteFile(filepath.Join(s.dir, "annotations"), []byte(annotations), 0o600),
		os.WriteFile(filepath.Join(s.dir, "syncer.yaml"), []byte(rotation), 0o600),
	)
}

// load reads the configuration of the rotator.
func (s *shop) load(ctx context.Context) error {
	key, err := s.server.APIKey(ctx, "host/"+rotates)
	if err != nil {
		return err
	}
	env := map[string]string{"CONJUR_AUTHN_LOGIN": "host/" + rotates, "CONJUR_AUTHN_API_KEY": key}
	s.rotation, _, err = config.LoadRotation(config.Sources{ConfigFile: config.ReadFile(filepath.Join(s.dir, "syncer.yaml")), Getenv: func(name string) string {
		if value, ok := env[name]; ok {
			return value
		}
		return s.env[name]
	}})
	if err != nil {
		return err
	}
	s.client, err = connect.Conjur(s.rotation.Conjur, connect.Options{})
	return err
}

func (s *shop) rotator(l rotation.Listener) (*rotation.Rotator, func(), error) {
	return rotators.Connect(s.rotation, rotators.Parts{Options: connect.Options{Log: zap.NewNop()}, Listener: l})
}

func (s *shop) close() error {
	for _, p := range s.programs {
		p.close()
	}
	if s.client != nil {
		s.client.Close()
	}
	return s.world.close()
}

// play waits for the first key, requests another, and waits until the first key is
// removed.
func (s *shop) play(ctx context.Context, narrator *narration) error {
	var first string
	err := s.until(ctx, "the first key", func(r rotation.Report) bool {
		first = r.Primary
		return first != "" && s.programs[0].has(first) && s.programs[1].has(first)
	})
	if err != nil {
		return err
	}
	narrator.say("both programs have the first key; a new one is asked for")
	set := rotation.Set{Conjur: s.client, ID: keySet}
	if err := set.SendCommand(ctx, versions.Command{Verb: "now", At: time.Now()}); err != nil {
		return err
	}
	return s.until(ctx, "the end of the rotation", func(r rotation.Report) bool {
		return r.Stage == "idle" && r.Primary != first && !s.programs[0].has(first) && !s.programs[1].has(first)
	})
}

func (s *shop) until(ctx context.Context, what string, is func(rotation.Report) bool) error {
	for !is(rotation.Manual{Set: rotation.Set{Conjur: s.client, ID: keySet}}.Status(ctx)) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// narration writes the events of the set.
type narration struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
	stop  func() // ends the demonstration
	err   error  // of a write, which ends it
}

// Rotated implements rotation.Listener.
func (t *narration) Rotated(e rotation.Event) { t.say(e.Message) }

// Failed implements rotation.Listener.
func (t *narration) Failed(string, string) {}

func (t *narration) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := fmt.Fprintf(t.out, "%5.1f s  %s\n", time.Since(t.begin).Seconds(), text); err != nil {
		t.err = err
		t.stop()
	}
}
