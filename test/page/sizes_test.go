package page

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/secretsync/syncer/pkg/health/status"
)

var pictures = flag.String("pictures", "", "a folder for a picture of each size and each number of targets")

// widths are those of a phone, a tablet and a desk.
var widths = []int64{390, 768, 1280}

// shop is a standalone with Secrets of two identities, and a rotation.
func shop(n int) status.Status {
	now := time.Now()
	s := status.Status{
		At: now, Version: "0.1.0+3f2a9c81d0e4", Mode: "standalone", Namespace: "syncer", Pod: "syncer-6d5f7c9b8-x2k4q", Started: now.Add(-76 * time.Hour),
		Lanes: []status.Lane{
			{Name: "default", Login: "host/syncer", URL: "https://conjur.example.com", Polled: now.Add(-4 * time.Second)},
			{Name: "billing", Login: "host/billing/syncer", URL: "https://conjur.example.com", Polled: now.Add(-7 * time.Second)},
		},
		Rotations: []status.Rotation{
			{Set: "apps/shop/jwt", Stage: "introduce", Since: now.Add(-4 * time.Minute), Primary: "20261022t013907", Waits: "2 of 5 Pods of deployment/web do not have 20261122t013907", Due: now.Add(30 * 24 * time.Hour)},
			{Set: "db/shop/login", Stage: "idle", Since: now.Add(-6 * 24 * time.Hour), Primary: "20261116t020000", Due: now.Add(24 * time.Hour)},
		},
		Targets: []status.Target{},
	}
	named := []status.Target{
		{Name: "secret/shop/db", State: status.Fresh, Variables: "db/shop/host, db/shop/login/user, db/shop/login/password", Changed: now.Add(-6 * 24 * time.Hour)},
		{Name: "secret/shop/jwt", State: status.Fresh, Variables: "apps/shop/jwt", Changed: now.Add(-4 * time.Minute)},
		{Name: "secret/shop/tls", State: status.Fresh, Variables: "pki/shop/crt, pki/shop/key", Changed: now.Add(-17 * 24 * time.Hour), Expires: now.Add(13*24*time.Hour + time.Minute)},
		{Name: "secret/billing/stripe", Lane: "billing", State: status.Failing, Variables: "billing/stripe/key", Error: "variable billing/stripe/key not found, or host/billing/syncer may not read it: check the policy", Since: now.Add(-42 * time.Minute), Waits: "the next try", Next: now.Add(48 * time.Second), Changed: now.Add(-9 * 24 * time.Hour)},
		{Name: "secret/billing/ledger", Lane: "billing", State: status.Failing, Variables: "billing/stripe/key, billing/ledger/dsn", Error: "variable billing/stripe/key not found, or host/billing/syncer may not read it: check the policy", Since: now.Add(-41 * time.Minute), Waits: "the next try", Next: now.Add(50 * time.Second)},
		{Name: "secret/shop/smtp", State: status.Doubted, Variables: "mail/smtp/password", Waits: "proof that variables are gone: mail/smtp/password"},
		{Name: "secret/shop/cache", State: status.Waiting, Waits: "its turn"},
	}
	for i := range n {
		t := status.Target{Name: fmt.Sprintf("secret/team-%03d/app-%05d", i%100, i), State: status.Fresh, Variables: fmt.Sprintf("apps/team-%03d/%05d", i%100, i), Changed: now.Add(-time.Duration(i) * time.Minute)}
		if n > 1 && i < len(named) {
			t = named[i]
		}
		if t.Lane == "" {
			t.Lane = "default"
		}
		t.Place = strings.TrimPrefix(t.Name, "secret/")
		switch t.State {
		case status.Failing:
			t.Proven = t.Since
		case status.Fresh, status.Doubted:
			t.Proven = now.Add(-4 * time.Second)
		}
		s.Targets = append(s.Targets, t)
		s.Lanes[slices.IndexFunc(s.Lanes, func(l status.Lane) bool { return l.Name == t.Lane })].Targets++
	}
	slices.SortFunc(s.Targets, func(a, b status.Target) int { return strings.Compare(a.Name, b.Name) })
	if n < 2 {
		s.Lanes, s.Rotations = s.Lanes[:1], nil
	}
	return s
}

// size makes the window as wide as a device.
func (b *tab) size(width int64) {
	b.t.Helper()
	b.run(emulation.SetDeviceMetricsOverride(width, 844, 1, width < 500))
}

// whole fails the test if content is cut off at the right.
func (b *tab) whole() {
	b.t.Helper()
	var over []string
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("body *")].filter(e => !e.closest("thead") && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120))`, &over))
	if len(over) > 0 {
		b.t.Errorf("cut off: %q", over[:min(3, len(over))])
	}
}

// save writes a picture of the window, if that is wanted.
func (b *tab) save(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	var image []byte
	b.run(chromedp.CaptureScreenshot(&image))
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), image, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// everySize looks at the page on each device, dark and then light.
func (b *tab) everySize(name string) {
	b.t.Helper()
	for _, width := range widths {
		b.size(width)
		for _, scheme := range []string{"dark", "light"} {
			b.prefer(scheme)
			b.whole()
			b.save(fmt.Sprintf("%s-%d-%s", name, width, scheme))
			b.run(chromedp.Evaluate(`document.getElementById("choice").scrollIntoView()`, nil))
			b.save(fmt.Sprintf("%s-%d-%s-targets", name, width, scheme))
			b.run(chromedp.Evaluate(`scrollTo(0, 0)`, nil))
		}
	}
}

// TestEverySize looks at the page on each device, with few and with many targets, and
// then without the process.
func TestEverySize(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := shop(n)
			server := httptest.NewServer(&status.Handler{Look: func() status.Status { return s }})
			end := func() { server.CloseClientConnections(); server.Close() }
			defer end()
			b := open(t, server.URL) // which leads to the page
			b.await(fmt.Sprintf(`document.querySelectorAll("#targets > tbody > tr").length === %d`, min(n, 200)))
			for _, lost := range []bool{false, true} {
				name := fmt.Sprint(n)
				if lost {
					name += "-killed"
					end()
					b.await(`document.body.classList.contains("lost") && !document.getElementById("lost").hidden && document.title.startsWith("(lost)")`)
				}
				b.everySize(name)
			}
			if n > 1 {
				b.await(`(c => c[0] === c[1])(["failing", "fresh"].map(s => getComputedStyle(document.querySelector("td.state." + s)).color))`)
			}
		})
	}
}

// TestACardOnAPhone shows the state and the error first, and the error once. All cards are
// equally wide, and the name of the Pod stays whole.
func TestACardOnAPhone(t *testing.T) {
	b := open(t, serve(t, &status.Handler{Look: func() status.Status { return shop(7) }}))
	b.size(390)
	b.await(row("secret/billing/stripe") + " !== undefined")
	b.await(`(tops => tops[0] < tops[1] && tops[1] < tops[2])(["state", "error", "target"].map(c => ` + row("secret/billing/stripe") + `.querySelector("td." + c).getBoundingClientRect().top))`)
	b.await(`new Set([...document.querySelectorAll("article")].map(e => e.offsetWidth)).size === 1 && document.querySelector("#whose span").offsetHeight < 30`)
	const once = `document.body.innerText.split("variable billing/stripe/key not found").length - 1 === 2` // of two targets
	b.await(once)
	b.run(chromedp.Evaluate(row("secret/billing/stripe")+`.querySelector("button").click()`, nil))
	b.await(`document.querySelector("tr.details dd a").href.includes("troubleshooting")`)
	b.await(once)
	b.whole()
	b.run(chromedp.Evaluate(row("secret/billing/stripe")+`.scrollIntoView()`, nil))
	b.save("details-390")
}

// TestWhatThePageSays goes through the page as an operator does.
func TestWhatThePageSays(t *testing.T) {
	url := serve(t, &status.Handler{Look: func() status.Status { return shop(7) }})
	b := open(t, url)
	has := func(selector, text string) {
		t.Helper()
		b.await(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, text))
	}
	b.await(`document.title === "(3) Syncer · syncer/syncer-6d5f7c9b8-x2k4q"`)
	has("#whose", "Pod syncer/syncer-6d5f7c9b8-x2k4q")
	has("#whose", "started 3 d ago")
	has("#lanes", "host/billing/syncer at https://conjur.example.com")
	has("#errors summary", "2 targets: variable billing/stripe/key not found")
	has("#errors details p", "secret/billing/ledger, secret/billing/stripe")
	has("tr:has(td.failing) .failingSince", "min ago")
	b.await(`document.querySelector("tr:has(td.failing) .failingSince").title !== ""`)
	has(`#rotations li[aria-current=step]`, "introduce")
	has("#rotations article", "Waits for: 2 of 5 Pods")
	has("#rotations article", "Next: the new version becomes the primary")
	b.await(`document.querySelectorAll("#rotations article:first-of-type li").length === 5`)

	// A filter without a match offers to clear it; the address has the filter.
	b.run(chromedp.SendKeys("#words", "nothing-like-this"))
	has("#none", "No target matches the filter.")
	b.await(`location.search === "?filter=nothing-like-this"`)
	b.run(chromedp.Click("#clear"))
	b.await(`location.search === "" && document.querySelectorAll("#targets > tbody > tr").length === 7 && document.activeElement.id === "words"`)
	b.run(chromedp.Navigate(url + "?filter=shop&hide=fresh,waiting"))
	b.await(`document.querySelectorAll("#targets > tbody > tr").length === 1 && document.getElementById("words").value === "shop"`)

	// By the keyboard alone: the first row opens, and closes.
	b.run(chromedp.Navigate(url))
	b.await(`document.querySelectorAll("#targets > tbody > tr").length === 7`)
	b.run(chromedp.Evaluate(`document.querySelector("#targets tbody button").focus()`, nil), chromedp.KeyEvent("\r"))
	has("tr.details", "Variablesbilling/stripe/key, billing/ledger/dsn")
	has("tr.details", "Secretbilling/ledger")
	b.await(`document.querySelector("#targets tbody button").getAttribute("aria-expanded") === "true"`)
	b.run(chromedp.Evaluate(`document.getElementById("choice").scrollIntoView()`, nil))
	b.save("details-1280")
	b.run(chromedp.KeyEvent("\r"))
	b.await(`document.querySelector("tr.details") === null`)
	b.well()
}

// TestASilentProcessCountsAsLost: a process that hangs keeps its connections, but the page
// notices.
func TestASilentProcessCountsAsLost(t *testing.T) {
	hang, hung := make(chan struct{}), make(chan struct{})
	looks := 0
	b := open(t, serve(t, &status.Handler{Look: func() status.Status {
		if looks++; looks == 3 {
			close(hung)
			<-hang
		}
		return shop(1)
	}}))
	<-hung
	b.await(`!document.getElementById("lost").hidden`)
	close(hang)
	b.await(`document.getElementById("lost").hidden && !document.body.classList.contains("lost")`)
	b.well()
}

// TestPicturesOfTheDocumentation shows Secrets, identities and a rotation.
func TestPicturesOfTheDocumentation(t *testing.T) {
	b := open(t, serve(t, &status.Handler{Look: func() status.Status { return shop(7) }}))
	b.await(`document.querySelectorAll("#targets > tbody > tr").length === 7`)
	b.run(emulation.SetDeviceMetricsOverride(1280, 1000, 1, false))
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		b.picture("status-" + scheme + ".png")
	}
}

// accessible runs axe-core on the page.
func (b *tab) accessible(script, where string) {
	b.t.Helper()
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML string }
	}
	b.run(chromedp.Evaluate(script, nil),
		chromedp.Evaluate(`axe.run().then(r => r.violations)`, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range found {
		b.t.Errorf("%s: %s (%s): %s %v", where, v.ID, v.Impact, v.Help, v.Nodes)
	}
}
