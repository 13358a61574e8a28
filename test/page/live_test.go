package page

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/page"
	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
)

// sidecar is a real Syncer beside a real server.
type sidecar struct {
	t           *testing.T
	server      *conjurdtest.Server
	dir         string
	annotations []string
	url         string // of its page
}

// start builds and starts Syncer, with the groups, each of a variable of its
// name.
func start(t *testing.T, groups ...string) *sidecar {
	t.Helper()
	s := &sidecar{t: t, server: conjurdtest.Start(t), dir: t.TempDir()}
	address := proctest.FreeAddress(t)
	s.url = "http://" + address + "/status"
	s.server.Policy("- !host app\n")
	s.annotations = []string{
		`conjur.org/container-mode="sidecar"`, `conjur.org/secrets-destination="file"`, `conjur.org/secrets-refresh-interval="1s"`,
		`conjur.org/removal-grace="3s"`, `conjur.org/exit-on-revoked="false"`, `conjur.org/server-status="true"`, fmt.Sprintf("conjur.org/server-address=%q", address),
	}
	for _, group := range groups {
		s.group(group)
	}
	for _, folder := range []string{"secrets", "templates", "status"} {
		if err := os.Mkdir(filepath.Join(s.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.annotate()
	binary := filepath.Join(s.dir, "syncer")
	if err := gobuild.Build(binary, "../..", "./cmd/syncer"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--annotations", s.dir+"/annotations", "--secrets-dir", s.dir+"/secrets", "--templates-dir", s.dir+"/templates", "--status-dir", s.dir+"/status")
	cmd.Env = []string{"CONJUR_APPLIANCE_URL=" + s.server.URL, "CONJUR_ACCOUNT=" + conjurdtest.Account, "CONJUR_SSL_CERTIFICATE=" + string(s.server.CA),
		"CONJUR_AUTHN_LOGIN=host/app", "CONJUR_AUTHN_API_KEY=" + s.server.HostKey("app")}
	p := proctest.Start(t, cmd, (*exec.Cmd).Start)
	proctest.Eventually(t, "the status page", func() bool {
		p.MustRun()
		_, err := page.Client{URL: "http://" + address}.Get(t.Context())
		return err == nil
	})
	return s
}

// group makes a group of one variable, which has its name.
func (s *sidecar) group(name string) {
	s.t.Helper()
	s.server.Policy("- !variable " + name + "\n")
	s.privilege("!permit", name)
	s.server.Set(name, "canary")
	s.annotations = append(s.annotations, fmt.Sprintf("conjur.org/conjur-secrets.%s=%q", name, "- "+name), fmt.Sprintf("conjur.org/secret-file-format.%s=%q", name, "json"))
}

func (s *sidecar) privilege(tag, id string) {
	s.t.Helper()
	s.server.Policy(fmt.Sprintf("- %s { role: !host app, privileges: [read, execute], resource: !variable %s }\n", tag, id))
}

// annotate writes the annotations as the kubelet does: as a whole.
func (s *sidecar) annotate() {
	s.t.Helper()
	path := filepath.Join(s.dir, "annotations")
	if err := os.WriteFile(path+".new", []byte(strings.Join(s.annotations, "\n")+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

// TestThePageFollowsWhatHappens never loads the page a second time.
func TestThePageFollowsWhatHappens(t *testing.T) {
	s := start(t, "cache", "db", "mail", "queue", "web")
	b := open(t, s.url)
	b.shows("file/web", page.Fresh)
	if got := b.names(); !slices.Equal(got, []string{"file/cache", "file/db", "file/mail", "file/queue", "file/web"}) {
		t.Errorf("shown: %q", got)
	}
	b.run(chromedp.Click(`th[data-by=target] button`), chromedp.Click(`th[data-by=target] button`))
	b.await(`document.querySelector("#targets tbody tr").cells[1].textContent === "file/web"`)
	b.await(`document.querySelector("th[data-by=target]").getAttribute("aria-sort") === "descending"`)

	s.group("added")
	s.annotate()
	b.shows("file/added", page.Fresh)

	s.privilege("!deny", "db")
	b.shows("file/db", page.Doubted)
	b.shows("file/db", page.Revoked)
	b.run(chromedp.Click(`th[data-by=state] button`))
	b.await(`document.querySelector("#targets tbody tr").cells[1].textContent === "file/db"`)
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		b.picture("status-" + scheme + ".png")
	}
	var text string
	b.run(chromedp.Evaluate("document.documentElement.outerHTML", &text))
	if strings.Contains(text, "canary") {
		t.Error("a value is in the page")
	}

	b.run(chromedp.SendKeys("#words", "web"))
	b.await(`document.querySelectorAll("#targets tbody tr").length === 1`)
	b.run(chromedp.SendKeys("#words", "\b\b\b"), chromedp.Click(`input[value=fresh]`))
	b.await(`document.querySelectorAll("#targets tbody tr").length === 1`)
	s.privilege("!permit", "db")
	b.await(`document.querySelectorAll("#targets tbody tr").length === 0`)
	b.run(chromedp.Click(`input[value=fresh]`))
	b.shows("file/db", page.Fresh)
	b.well()
}
