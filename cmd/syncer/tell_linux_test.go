package main

import (
	"crypto/rand"
	"os/exec"
	"testing"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
)

// startInPod is start, as the first process of a container of the Pod.
func (w *world) startInPod(pod *podtest.Pod) *proctest.Process {
	w.Helper()
	return w.startBy(func(cmd *exec.Cmd) error { return pod.Run(cmd, 0) })
}

func TestTheApplicationIsSignalledAfterEachChange(t *testing.T) {
	t.Parallel()
	w, pod := newWorld(t), podtest.Start(t)
	app, other := pod.App("web", 1000), pod.App("metrics", 1001)
	w.Group("db", "json", "db/password")
	w.Annotations["restart-app-signal"] = "SIGHUP"
	w.Annotations["restart-app-command"] = "web"
	p := w.startInPod(pod)
	w.awaitProvided()
	for range 2 {
		w.Renew("db/password")
		app.Gets("SIGHUP")
		w.await("db.json", w.Value["db/password"]) // it is there already
		w.awaitUpdated()
	}
	w.beat()
	p.Stop()
	if extra := append(app.Got(), other.Got()...); len(extra) > 0 {
		t.Errorf("signals too many: %v", extra)
	}
	if n := len(p.Lines("Signal sent", `"processes": 1`)); n != 2 {
		t.Errorf("%d lines in the log for 2 signals", n)
	}
	if !pod.Lives() {
		t.Error("/pause has ended")
	}
}

func TestASignalThatAnEarlierProcessDidNotLiveToSendIsSent(t *testing.T) {
	t.Parallel()
	w, pod := newWorld(t), podtest.Start(t)
	app := pod.App("web", 1000)
	w.Group("db", "json", "db/password")
	w.Annotations["restart-app-signal"] = "SIGUSR1"
	p := w.startInPod(pod)
	w.awaitProvided()
	p.Stop()
	w.write(w.Path("status", ".untold-"+rand.Text()), "") // as a process leaves it that dies after a write
	p = w.startInPod(pod)
	app.Gets("SIGUSR1")
	w.awaitUpdated()
	p.Stop()
	p = w.startInPod(pod)
	w.beat()
	w.beat()
	p.Stop()
	if extra := app.Got(); len(extra) > 0 || w.exists("status", notify.UpdatedFile) {
		t.Errorf("told once more: %v", extra)
	}
}

func TestANamespaceThatIsNotSharedIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Annotations["restart-app-signal"] = "SIGHUP"
	p := w.startBy(func(cmd *exec.Cmd) error { return podtest.Alone(cmd, 0) })
	w.awaitProvided()
	w.Renew("db/password")
	w.awaitUpdated()
	eventually(t, "a word about the namespace", func() bool { return len(p.Lines("ERROR", "shareProcessNamespace: true")) == 1 })
	p.Stop()
}
