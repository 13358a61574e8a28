package consumers_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

// example is the folder of the migration that is an example.
const example = "../../../deploy/examples/keysets/reencrypt"

// cards is a table of sealed cards in a real PostgreSQL, and what is in it.
type cards struct {
	*testing.T
	server *pgtest.Server

	mu   sync.Mutex
	card map[int]string
}

func keyOf(id string) []byte { return []byte(strings.Repeat(id[1:], 32)) }

// aead is what the documentation says of the form <id>:<iv>:<ciphertext>.
func aead(t *testing.T, id string) cipher.AEAD {
	block, err := aes.NewCipher(keyOf(id))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return gcm
}

func place(id string, n int) []byte { return fmt.Appendf(nil, "%s.customers/%d/card", id, n) }

func (c *cards) seal(id string, n int, plain string) string {
	iv := make([]byte, 12)
	for i := range iv {
		iv[i] = byte(rand.Int())
	}
	e := base64.StdEncoding
	return id + ":" + e.EncodeToString(iv) + ":" + e.EncodeToString(aead(c.T, id).Seal(nil, iv, []byte(plain), place(id, n)))
}

func (c *cards) open(id string, n int, sealed string) string {
	c.Helper()
	parts := strings.Split(sealed, ":")
	if len(parts) != 3 || parts[0] != id {
		c.Fatalf("row %d is not under %s", n, id)
	}
	iv, err1 := base64.StdEncoding.DecodeString(parts[1])
	text, err2 := base64.StdEncoding.DecodeString(parts[2])
	if err1 != nil || err2 != nil {
		c.Fatal(err1, err2)
	}
	plain, err := aead(c.T, id).Open(nil, iv, text, place(id, n))
	if err != nil {
		c.Fatalf("row %d: %v", n, err)
	}
	return string(plain)
}

// write seals a card as the application does, whether the row is there or not.
func (c *cards) write(id string, rows ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sql strings.Builder
	for _, n := range rows {
		c.card[n] = fmt.Sprint("card ", rand.Uint64())
		fmt.Fprintf(&sql, "INSERT INTO customers VALUES (%d, '%s') ON CONFLICT (id) DO UPDATE SET card = excluded.card;", n, c.seal(id, n, c.card[n]))
	}
	c.server.Query(c.T, "postgres", sql.String())
}

// left returns how many rows are under a key.
func (c *cards) left(id string) (n int) {
	c.Helper()
	fmt.Sscan(c.server.Query(c.T, "postgres", "SELECT count(*) FROM customers WHERE split_part(card, ':', 1) = '"+id+"'")[0], &n)
	return n
}

func newCards(t *testing.T) *cards {
	t.Helper()
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &cards{T: t, server: server, card: map[int]string{}}
	server.Query(t, "postgres", "CREATE TABLE customers (id bigint PRIMARY KEY, card text NOT NULL)")
	var rows []int
	for n := range 2000 {
		rows = append(rows, n)
	}
	c.write("r2", rows...)
	return c
}

// The example's program runs as a Job that is killed at any moment and begun
// again, while the application goes on.
func TestTheExampleReencryptsATable(t *testing.T) {
	program := filepath.Join(t.TempDir(), "reencrypt")
	if err := gobuild.Build(program, example, "."); err != nil {
		t.Fatal(err)
	}
	keys := t.TempDir()
	for name, id := range map[string]string{"r2.key": "r2", "r3.key.primary": "r3"} {
		if err := os.WriteFile(filepath.Join(keys, name), keyOf(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, table := newWorld(t), newCards(t)
	text, err := os.ReadFile(filepath.Join(example, "cronjob.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cron batchv1.CronJob
	if err := yaml.UnmarshalStrict(text, &cron); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Batch.CronJobs(w.ns).Create(t.Context(), &cron, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		t.Fatal(err)
	}
	c := w.consumers(consumers.Config{Migrate: "cronjob/" + cron.Name})
	w.says(w.shut(c, left).Waits, "job/reencrypt-")
	list, err := w.Batch.Jobs(w.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Jobs: %v", len(list.Items), err)
	}

	stop := make(chan struct{})
	var application sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); application.Wait() })
	defer end()
	application.Go(func() {
		for n := 2000; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				table.write("r3", n, rand.IntN(2000))
			}
		}
	})
	kills := 0
	for range 6 {
		if table.runs(&list.Items[0], program, keys, true) < 0 {
			kills++
		}
		w.shut(c, left)
	}
	if status := table.runs(&list.Items[0], program, keys, false); status != 0 {
		t.Errorf("it ends with status %d", status)
	}
	end()
	if kills < 3 {
		t.Errorf("it was killed %d times only", kills)
	}
	w.ends(&list.Items[0], batchv1.JobComplete)
	w.opens(c, left)
	if n := table.left("r2"); n != 0 {
		t.Errorf("%d rows are left under the old key", n)
	}
	rows := table.server.Query(t, "postgres", "SELECT id, card FROM customers")
	if len(rows) != len(table.card) {
		t.Errorf("%d rows of %d", len(rows), len(table.card))
	}
	for _, row := range rows {
		var n int
		var sealed string
		fmt.Sscan(row, &n, &sealed)
		if got := table.open("r3", n, sealed); got != table.card[n] {
			t.Errorf("row %d has %q instead of %q", n, got, table.card[n])
		}
	}
}

// runs runs a Job's program as its controller would have it run, and returns the
// exit status. If it is to be killed, that is at some moment after it has begun to
// do something.
func (c *cards) runs(job *batchv1.Job, program, keys string, kill bool) int {
	c.Helper()
	host, port, err := net.SplitHostPort(c.server.Socket)
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"KEYS=" + keys, fmt.Sprintf("DATABASE_URL=host=%s port=%s user=postgres dbname=postgres sslmode=disable", host, port)}
	for _, e := range job.Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(e.Name, "SYNCER_") {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
	}
	before := c.left("r2")
	p := proctest.Start(c.T, cmd, nil)
	if kill {
		proctest.Eventually(c.T, "the Job does something", func() bool { return c.left("r2") < before || before == 0 })
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
		_ = cmd.Process.Kill() // it may have ended by itself
	}
	return p.ExitCode()
}
