package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// kubelet restarts containers: all of them after the exit status of a restart in place,
// and after another exit only Syncer's. The application reads its file at its start.
type kubelet struct {
	*world
	p        *proctest.Process
	app      string // what the application read
	restarts int
	lost     bool // a kill came between the note of a restart and the exit, as documented
}

// restart waits until the process has ended, and starts it again.
func (k *kubelet) restart() {
	k.Helper()
	status := k.p.ExitCode()
	if status == config.InPlaceStatus {
		k.restarts++
	} else if status != -1 {
		k.Fatalf("exit status %d", status)
	} else if len(k.p.Lines("all containers of the Pod in place")) > 0 {
		k.lost = true
	}
	k.p = k.start()
	if status == config.InPlaceStatus {
		k.startApplication()
	}
}

// startApplication starts it as a startup probe of Syncer has the kubelet do.
func (k *kubelet) startApplication() {
	k.Helper()
	k.awaitProvided()
	k.app = k.file("db.json")
}

func newKubelet(t *testing.T, more ...string) *kubelet {
	k := &kubelet{world: newWorld(t)}
	k.Group("db", "json", "db/password")
	k.Annotations["restart-app-in-place"], k.Annotations["restart-app-every"] = "true", "1s"
	for pair := range slices.Chunk(more, 2) {
		k.Annotations[pair[0]] = pair[1]
	}
	k.p = k.start()
	k.startApplication()
	return k
}

// An application that deletes its file after reading finds it at its next start, and that
// delivery causes no other restart.
func TestRestartInPlaceOfAnApplicationThatDeletesItsFile(t *testing.T) {
	t.Parallel()
	k := newKubelet(t, "restore-deleted-files", "never", "restart-app-warning", "1s")
	k.delete()
	for range 2 {
		k.Renew("db/password")
		k.awaitUpdated()
		k.delete()
		k.restart()
		if !strings.Contains(k.app, k.Value["db/password"]) {
			t.Errorf("the application started with %q", k.app)
		}
		k.delete()
	}
	k.beat()
	k.beat()
	if k.exists("status", notify.UpdatedFile) {
		t.Error("the delivery for the start of the application was announced")
	}
	k.p.Stop()
}

// delete deletes the application's file.
func (k *kubelet) delete() {
	k.Helper()
	if err := os.Remove(k.Path("secrets", "db.json")); err != nil {
		k.Error(err)
	}
}

func TestRestartInPlaceOnceForEachChange(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	for range 2 {
		k.Renew("db/password")
		k.restart()
		k.await("db.json", k.Value["db/password"])
		if k.app != k.file("db.json") {
			t.Error("the application started before the new value was there")
		}
		k.awaitUpdated() // announced before
	}
	k.beat()
	k.beat()
	k.p.Stop()
	if k.restarts != 2 {
		t.Errorf("%d restarts for 2 changes", k.restarts)
	}
}

// Whenever Syncer is killed, the application gets the last value, and there is at most
// one restart for each change.
func TestRestartInPlaceOutlivesKills(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	changes := 4
	for range changes {
		k.Renew("db/password")
		for range random.IntN(3) {
			time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // any moment
			k.p.Kill()
			k.restart()
		}
	}
	if k.lost {
		k.Renew("db/password")
		changes++
	}
	k.await("db.json", k.Value["db/password"])
	for k.app != k.file("db.json") {
		k.restart()
	}
	k.beat()
	k.p.Stop()
	if k.restarts > changes {
		t.Errorf("%d restarts for %d changes", k.restarts, changes)
	}
}
