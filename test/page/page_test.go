// Package page tests the status page in a real browser: Debian's Chromium, without a window.
// It is a separate module, so that Syncer does not depend on the browser's driver. make
// test-page runs it.
package page

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/test/proctest"
)

var (
	update = flag.Bool("update", false, "write the pictures of docs anew")
	axe    = flag.String("axe", os.Getenv("SYNCER_AXE"), "axe.min.js of axe-core")
)

// tab is a page that a browser shows.
type tab struct {
	context.Context
	t *testing.T

	mu     sync.Mutex
	errors []string // what the page reported to its console
}

// open starts a browser and shows a status.
func open(t *testing.T, url string) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium; apt-get install chromium")
	}
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(proctest.Patience),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	browser, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closed := chromedp.NewContext(browser)
	ctx, cancel := context.WithTimeout(ctx, proctest.Patience)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // which waits for the browser
		cancel()
		closed()
		stop()
		proctest.Eventually(t, "the end of its processes", func() bool { return os.RemoveAll(profile) == nil })
	})
	b := &tab{Context: ctx, t: t}
	chromedp.ListenTarget(ctx, b.hear)
	b.run(chromedp.Navigate(url))
	return b
}

// hear records errors on the page.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		b.errors = append(b.errors, fmt.Sprint(e.Type, e.Args))
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// await waits until an expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	if err := chromedp.Run(b, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(proctest.Patience))); err != nil {
		var text string
		_ = chromedp.Run(b, chromedp.Evaluate("document.body.innerText", &text))
		b.t.Fatalf("%s: %v; the page shows\n%s", expression, err, text)
	}
}

// names returns the targets in the order in which they are shown.
func (b *tab) names() (names []string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("#targets tbody > tr")].map(r => r.cells[1]?.textContent)`, &names))
	return names
}

// row is the row of a target, as an expression.
func row(target string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#targets tbody > tr")].find(r => r.cells[1]?.textContent === %q)`, target)
}

// shows waits until a target's row begins with a state.
func (b *tab) shows(target string, state status.State) {
	b.t.Helper()
	b.await(fmt.Sprintf("%s?.cells[0].textContent === %q", row(target), state))
}

// well fails the test if an error occurred on the page.
func (b *tab) well() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("the page reports %q", b.errors)
	}
}

// picture writes a screenshot into docs, if that is wanted.
func (b *tab) picture(name string) {
	b.t.Helper()
	var image []byte
	b.run(chromedp.CaptureScreenshot(&image))
	if *update {
		if err := os.WriteFile(filepath.Join("../../docs", name), image, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// prefer makes the browser prefer light or dark.
func (b *tab) prefer(scheme string) {
	b.t.Helper()
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// serve shows a status at an address of this machine.
func serve(t *testing.T, h *status.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/status"
}

func TestHostileTextsAreTexts(t *testing.T) {
	const evil = `<img src=x onerror="document.title='owned'"><script>document.title="owned"</script>`
	b := open(t, serve(t, &status.Handler{Look: func() status.Status {
		return status.Status{Mode: evil, Version: evil, Lanes: []status.Lane{{Name: evil}}, Targets: []status.Target{
			{Name: "file/" + evil, Lane: evil, State: status.Failing, Error: evil + "\n\nevent: status\ndata: {}", Waits: evil},
		}}
	}}))
	b.shows("file/"+evil, status.Failing)
	var title string
	var elements int
	b.run(chromedp.Title(&title), chromedp.Evaluate(`document.querySelectorAll("img, td :not(button), article script").length`, &elements))
	if title != "(1) Syncer" || elements > 0 {
		t.Errorf("the title is %q, and there are %d elements", title, elements)
	}
	b.well()
}

func TestTheTokenIsAskedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	b := open(t, serve(t, &status.Handler{TokenFile: file, Look: func() status.Status {
		return status.Status{Lanes: []status.Lane{}, Targets: []status.Target{{Name: "file/db", State: status.Fresh}}}
	}}))
	b.await(`document.getElementById("summary").textContent.startsWith("the token cannot be read")`)
	if err := os.WriteFile(file, []byte("öffne-dich\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.await(`document.getElementById("summary").textContent.startsWith("the status needs the token in the file of server.statusTokenFile") && document.activeElement.id === "token"`)
	b.run(chromedp.KeyEvent("wrong\r"))
	b.await(`document.getElementById("refused").textContent !== "" && !document.getElementById("login").hidden`)
	b.run(chromedp.KeyEvent(" öffne-dich \r")) // replaces the wrong one, which is selected
	b.shows("file/db", status.Fresh)
	b.await(`document.getElementById("login").hidden && location.search === ""`)
	b.well()
}

// TestTenThousandTargets measures how soon the page shows the failing targets.
func TestTenThousandTargets(t *testing.T) {
	s := status.Status{Mode: "standalone", Lanes: []status.Lane{{Name: "default", Targets: 10_000, Polled: time.Now()}}}
	for i := range 10_000 {
		s.Targets = append(s.Targets, status.Target{Name: fmt.Sprintf("secret/team-%03d/app-%05d", i%100, i), Lane: "default", State: status.Fresh, Proven: time.Now(), Changed: time.Now()})
	}
	s.Targets[7_777].State, s.Targets[7_777].Error = status.Failing, "no answer"
	b := open(t, serve(t, &status.Handler{Look: func() status.Status { return s }}))
	b.shows(s.Targets[7_777].Name, status.Failing)
	if names := b.names(); len(names) != 200 || names[0] != s.Targets[7_777].Name {
		t.Errorf("%d rows, the first %q", len(names), names[:min(1, len(names))])
	}
	b.run(chromedp.Click("#more"))
	b.await(`document.querySelectorAll("#targets tbody > tr").length === 400`)
	b.run(chromedp.SendKeys("#words", "team-042"))
	b.await(`document.querySelectorAll("#targets tbody > tr").length === 100`)
	var rows float64
	b.run(chromedp.Evaluate(`performance.getEntriesByName("rows")[0].startTime`, &rows))
	t.Logf("from the navigation to the rows of 10,000 targets: %.0f ms", rows)
	b.well()
}

// TestAccessible runs axe-core on a page with all kinds of content.
func TestAccessible(t *testing.T) {
	script, err := os.ReadFile(*axe)
	if err != nil {
		t.Fatalf("%v; make test-page fetches axe-core", err)
	}
	now := time.Now()
	s := status.Status{Mode: "standalone", Version: "1.0", Lanes: []status.Lane{
		{Name: "default", Targets: 3, Polled: now}, {Name: "shop", Targets: 3, Held: status.Held{Gone: 4, Of: 5, Until: now.Add(time.Hour)}},
	}}
	for i, state := range []status.State{status.Fresh, status.Waiting, status.Stale, status.Doubted, status.Failing, status.Revoked} {
		s.Targets = append(s.Targets, status.Target{Name: fmt.Sprintf("secret/shop/db-%d", i), Lane: "shop", State: state, Proven: now, Overrides: "node/n1/db", Expires: now.Add(13 * 24 * time.Hour), Error: "no answer", Waits: "the next try", Next: now.Add(time.Minute)})
	}
	s.Rotations = []status.Rotation{{Set: "apps/shop/jwt", Stage: "switch", Since: now, Primary: "20261122t013907", Waits: "2 of 5 Pods of deployment/shop", Unasked: "shop/job-x"}}
	b := open(t, serve(t, &status.Handler{Look: func() status.Status { return s }}))
	b.await(`document.getElementById("rotations").innerText.includes("2 of 5 Pods of deployment/shop") && document.getElementById("rotations").innerText.includes("Not asked: shop/job-x")`)
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		b.shows("secret/shop/db-5", status.Revoked)
		b.await(`getComputedStyle(document.querySelector("td.overrides")).display !== "none"`)
		b.await(`document.querySelector("td.expires").innerText === "in 12 d"`)
		b.accessible(string(script), scheme)
	}
	b.run(chromedp.Evaluate(`document.querySelectorAll("#targets tbody button").forEach(e => e.click())`, nil))
	b.size(390)
	b.accessible(string(script), "on a phone, with details")
}

// TestNobodyElseMayReadIt: a page of another origin does not get the data.
func TestNobodyElseMayReadIt(t *testing.T) {
	url := serve(t, &status.Handler{Look: func() status.Status { return status.Status{} }})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>waiting</title><script>fetch(%q).then(() => "read", () => "refused").then(s => document.title = s)</script>`, url+".json")
	}))
	defer other.Close()
	b := open(t, strings.Replace(other.URL, "127.0.0.1", "localhost", 1))
	b.await(`document.title !== "waiting"`)
	var title string
	if b.run(chromedp.Title(&title)); title != "refused" {
		t.Errorf("another page has %s the data", title)
	}
}
