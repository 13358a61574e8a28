package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/world"
)

// sidecar is a real Syncer beside a real server.
type sidecar struct {
	*world.Pod
	process *proctest.Process
	url     string // of its page
}

// start builds and starts Syncer, with the groups, each of a variable of its
// name.
func start(t *testing.T, groups ...string) *sidecar {
	t.Helper()
	address := proctest.FreeAddress(t)
	s := &sidecar{Pod: world.NewPod(t), url: "http://" + address + "/status"}
	maps.Copy(s.Annotations, map[string]string{"removal-grace": "3s", "exit-on-revoked": "false", "server-status": "true", "server-address": address})
	for _, group := range groups {
		s.Group(group, "json", group)
	}
	s.Annotate()
	if err := gobuild.Build(s.Path("syncer"), "../..", "./cmd/syncer"); err != nil {
		t.Fatal(err)
	}
	s.spawn(t)
	return s
}

// spawn starts the process, and waits for its page.
func (s *sidecar) spawn(t *testing.T) {
	t.Helper()
	s.process = s.Spawn(s.Path("syncer"), s.Environ(), s.Flags()...)
	proctest.Eventually(t, "the status page", func() bool {
		s.process.MustRun()
		_, err := status.Client{URL: strings.TrimSuffix(s.url, "/status")}.Get(t.Context())
		return err == nil
	})
}

// TestThePageFollowsWhatHappens never loads the page a second time.
func TestThePageFollowsWhatHappens(t *testing.T) {
	s := start(t, "cache", "db", "mail", "queue", "web")
	b := open(t, s.url)
	b.shows("file/web", status.Fresh)
	if got := b.names(); !slices.Equal(got, []string{"file/cache", "file/db", "file/mail", "file/queue", "file/web"}) {
		t.Errorf("shown: %q", got)
	}
	b.run(chromedp.Click(`th[data-by=target] button`), chromedp.Click(`th[data-by=target] button`))
	b.await(`document.querySelector("#targets tbody tr").cells[1].textContent === "file/web"`)
	b.await(`document.querySelector("th[data-by=target]").getAttribute("aria-sort") === "descending"`)

	s.Group("added", "json", "added")
	s.Annotate()
	b.shows("file/added", status.Fresh)

	s.Deny("db")
	b.shows("file/db", status.Doubted)
	b.shows("file/db", status.Revoked)
	b.run(chromedp.Click(`th[data-by=state] button`))
	b.await(`document.querySelector("#targets tbody tr").cells[1].textContent === "file/db"`)
	var text string
	b.run(chromedp.Evaluate("document.documentElement.outerHTML", &text))
	if s.Leak(text) != "" {
		t.Error("a value is in the page")
	}

	b.run(chromedp.SendKeys("#words", "web"))
	b.await(`document.querySelectorAll("#targets tbody tr").length === 1`)
	b.run(chromedp.SendKeys("#words", "\b\b\b"), chromedp.Click(`input[value=fresh]`))
	b.await(`document.querySelectorAll("#targets tbody tr").length === 1`)
	s.Permit("db")
	b.await(`document.querySelectorAll("#targets tbody tr").length === 0`)
	b.run(chromedp.Click(`input[value=fresh]`))
	b.shows("file/db", status.Fresh)
	b.well()
}

// TestAKilledProcessIsMissed stops the clock of the page. So it notices by the end of the
// connection, at once, and not by a silence. A new process brings the page back.
func TestAKilledProcessIsMissed(t *testing.T) {
	s := start(t, "db", "web")
	b := open(t, s.url)
	b.shows("file/web", status.Fresh)
	const color = `getComputedStyle(document.querySelector("td.state.fresh") ?? document.body).color`
	var colored string
	b.run(chromedp.Evaluate(color, &colored), chromedp.Evaluate(`Date.now = ((now) => () => now)(Date.now())`, nil))
	s.process.Signal(syscall.SIGKILL)
	b.await(`!document.getElementById("lost").hidden && document.title === "(lost) Syncer"`)
	b.await(fmt.Sprintf(`%s !== %q && getComputedStyle(document.querySelector("main")).filter === "grayscale(1)"`, color, colored))
	b.everySize("process-killed")

	s.process.ExitCode() // until then it may hold its address
	s.spawn(t)
	b.await(fmt.Sprintf(`document.getElementById("lost").hidden && %s === %q`, color, colored))
	b.well()
}
