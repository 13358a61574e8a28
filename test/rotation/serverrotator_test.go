package rotation

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

// serverRotator is Conjur's own rotator postgresql/password, as in Conjur OSS 1.24. Each
// moment it looks for an expiry of the annotated variable that is past or missing. It
// logs in with the variables url, username and password, changes that password in the
// database and in Conjur, and sets an expiry: the annotated time from now, or now if it
// failed. A write by anybody else clears the expiry.
type serverRotator struct {
	*shop
	on       atomic.Bool
	rotated  atomic.Int64
	mu       sync.Mutex // held from a look at the expiry to the new value
	expires  time.Time  // of the newest value; zero: it has none
	failures int
}

const (
	ownPassword = "shop/password"
	ownTTL      = 24 * time.Hour
)

// newServerRotator returns a running rotator, in a shop whose published login it rotates.
func newServerRotator(t *testing.T) *serverRotator {
	t.Helper()
	r := &serverRotator{shop: newShopOf(t, postgres, conjurdtest.Strict())}
	r.Policy(`
- !variable shop/username
- !variable
  id: shop/password
  annotations: { rotation/rotator: postgresql/password, rotation/ttl: P1D, rotation/postgresql/password/length: "24" }
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable shop/username, !variable shop/password] }
- !permit { role: !host app, privileges: [read, execute], resources: [!variable shop/username, !variable shop/password] }
`)
	for _, user := range r.users { // the rotator's login may change its own password only
		r.db.Query(t, "postgres", "ALTER ROLE "+user+" RESET role")
	}
	r.Set("shop/url", r.db.Addr+"/postgres")
	r.Intercept(r.between)
	r.on.Store(true)
	proctest.Running(t, func(ctx context.Context) {
		for ctx.Err() == nil {
			if r.on.Load() {
				r.rotateDue(ctx)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return r
}

// publishes has the engine publish the login, as the policy says.
func (r *serverRotator) publishes(heard *said) func(*rotation.Config) {
	return func(c *rotation.Config) {
		c.FromPolicy, c.Listener, c.Calm = true, heard, 2*time.Second
		c.Sets[0].Publish = map[string]render.Published{ownPassword: {Text: "password"}, "shop/username": {Text: "username"}}
	}
}

// ownRotatorRuns is in a warning of the server's rotator.
const ownRotatorRuns = "the server's own rotator has changed it"

// between makes the server show the expiry, and clear it with each write.
func (r *serverRotator) between(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case !strings.HasSuffix(req.URL.Path, "/variable/"+ownPassword):
			next.ServeHTTP(w, req)
		case req.Method == http.MethodPost:
			r.mu.Lock()
			defer r.mu.Unlock()
			next.ServeHTTP(w, req)
			r.expires = time.Time{}
		case strings.HasPrefix(req.URL.Path, "/resources/"):
			r.mu.Lock()
			defer r.mu.Unlock()
			said := httptest.NewRecorder()
			next.ServeHTTP(said, req)
			body := said.Body.String()
			if i := strings.LastIndex(body, `"expires_at":null`); i >= 0 && !r.expires.IsZero() {
				body = body[:i] + fmt.Sprintf(`"expires_at":%q`, r.expires.UTC().Format(time.RFC3339)) + body[i+len(`"expires_at":null`):]
			}
			w.Header().Set("Content-Type", said.Header().Get("Content-Type"))
			w.WriteHeader(said.Code)
			_, _ = w.Write([]byte(body))
		default:
			next.ServeHTTP(w, req)
		}
	})
}

func (r *serverRotator) rotateDue(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.expires.IsZero() && time.Now().Before(r.expires) {
		return
	}
	username, password := r.published(ctx, r.reader)
	if password == "" {
		return
	}
	next := rand.Text()[:24]
	if err := r.change(ctx, username, password, next); err != nil {
		r.expires = time.Now()
		r.failures++
		return
	}
	r.Set(ownPassword, next)
	r.expires = time.Now().Add(ownTTL)
	r.rotated.Add(1)
}

// change changes a password as its own user.
func (r *serverRotator) change(ctx context.Context, username, password, next string) error {
	conn, err := pgconn.Connect(ctx, fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", username, password, r.db.Addr))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, fmt.Sprintf("ALTER ROLE %s WITH PASSWORD '%s'", username, next)).ReadAll()
	return err
}

// published returns the login that programs read.
func (r *serverRotator) published(ctx context.Context, client *conjur.Client) (username, password string) {
	read := func(id string) string {
		value := client.Variable(ctx, id, "").Found[id]
		return string(value.Bytes())
	}
	return read("shop/username"), read(ownPassword)
}

// takeBack clears the expiry, as POST …?expirations does.
func (r *serverRotator) takeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expires = time.Time{}
}

// logInAlways logs in with what is published until stop is called, which returns how
// often, and the log-ins that failed. A login that was just changed is read again; one
// that stays as it is must work.
func (r *serverRotator) logInAlways() (stop func() (int64, []string)) {
	const most = 200 // attempts with the values that are there, before a log-in counts as failed
	client := r.as("app", "app")
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	var logins atomic.Int64
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				username, password := r.published(ctx, client)
				err := logIn(username, password)
				for range most {
					if err == nil || ctx.Err() != nil {
						break
					}
					r.mu.Lock() // so that the server's rotator is not in the middle of it
					username, password = r.published(ctx, client)
					err = logIn(username, password)
					r.mu.Unlock()
					settest.Sleep(ctx)
				}
				if logins.Add(1); err != nil && ctx.Err() == nil {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("login %d as %s: %v", logins.Load(), username, err))
					mu.Unlock()
				}
				select {
				case <-time.After(time.Duration(pause()) * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	stop = sync.OnceValues(func() (int64, []string) { cancel(); all.Wait(); return logins.Load(), failed })
	r.t.Cleanup(func() { stop() })
	return stop
}

// said collects Events.
type said struct {
	mu  sync.Mutex
	all []rotation.Event
}

func (s *said) Rotated(e rotation.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
}

func (*said) Failed(string, string) {}

// warned reports how many warnings there were with the words.
func (s *said) warned(words string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e.Warning && strings.Contains(e.Message, words) {
			n++
		}
	}
	return n
}

// TestTheServersOwnRotatorIsNotFought: Syncer neither begins nor publishes while that
// rotator is on, says why, and takes over when it is off. Programs that read the
// published login always have one that works.
func TestTheServersOwnRotatorIsNotFought(t *testing.T) {
	t.Parallel()
	own := newServerRotator(t)
	own.db.Query(t, "postgres", "ALTER ROLE "+own.users[0]+" LOGIN PASSWORD 'first'")
	own.Set("shop/username", own.users[0])
	own.Set(ownPassword, "first")
	client := own.as("rotates", "engine")
	heard := &said{}
	engine := own.rotator(client, own.database(client, own.db.Addr), nil, own.publishes(heard), func(c *rotation.Config) {
		c.Sets[0].Adopt = map[string]string{"password": ownPassword, "username": "shop/username"}
	})
	stop := own.logInAlways()
	turns := func() (n int64) {
		t.Helper()
		before := own.rotated.Load()
		proctest.Eventually(t, "another turn of the server's rotator", func() bool { n = own.rotated.Load(); return n > before })
		return n
	}
	proctest.Eventually(t, "a first turn of the server's rotator", func() bool { return own.rotated.Load() > 0 })
	run(t, engine)
	proctest.Eventually(t, "a warning", func() bool { return heard.warned(ownRotatorRuns) > 0 })
	for range 3 { // it is still on
		own.takeBack()
		turns()
	}
	if doc := own.Doc(); len(doc.Versions) > 0 {
		t.Fatalf("a version began while the server's rotator is on: %s", settest.Told(doc))
	}

	own.on.Store(false)
	own.takeBack()
	first := own.Idle("")
	second := own.Rotate()
	if username, password := own.published(t.Context(), own.reader); username != string(second.Parts["username"].Bytes()) || password != string(second.Parts["password"].Bytes()) || first.ID == second.ID {
		t.Error("what is published does not follow")
	}

	warned := heard.warned(ownRotatorRuns)
	own.on.Store(true) // its first turn is at once, as our write has no expiry
	turns()
	proctest.Eventually(t, "another warning", func() bool { return heard.warned(ownRotatorRuns) > warned })
	if err := own.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		own.takeBack()
		turns()
	}
	if primary, _ := own.Doc().Primary(); primary.ID != second.ID {
		t.Errorf("%s was promoted while the server's rotator is on", primary.ID)
	}
	n, failed := stop()
	if len(failed) > 0 {
		t.Errorf("of %d log-ins failed %s", n, some(failed))
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	t.Logf("%d log-ins, %d turns of the server's rotator, %d failed turns", n, own.rotated.Load(), own.failures)
}

// TestAFirstLoginIsNotPromotedBesideTheServersOwnRotator, which has changed no value as
// there was none. Programs that read the published login have one that works.
func TestAFirstLoginIsNotPromotedBesideTheServersOwnRotator(t *testing.T) {
	t.Parallel()
	own := newServerRotator(t)
	client := own.as("rotates", "engine")
	heard := &said{}
	run(t, own.rotator(client, own.database(client, own.db.Addr), nil, own.publishes(heard)))
	proctest.Eventually(t, "a warning", func() bool { return heard.warned(ownRotatorRuns) > 0 })
	if primary, used := own.Doc().Primary(); used {
		t.Errorf("%s was promoted", primary.ID)
	}
	proctest.Eventually(t, "a login that works", func() bool {
		own.mu.Lock()
		defer own.mu.Unlock()
		username, password := own.published(t.Context(), own.reader)
		return password != "" && logIn(username, password) == nil
	})
}
