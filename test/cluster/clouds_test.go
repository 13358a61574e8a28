package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/clouds"
)

// TestACloudsKeyIsOnlyInItsSecret: keys of three clouds are exchanged, then each cloud
// refuses. The Event at each Secret says so. No key appears in an Event, an annotation, the
// log, the page, the metrics, the status or the list of processes.
func TestACloudsKeyIsOnlyInItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	aws, gcp, azure := clouds.NewAWS(t, "shop", nil), clouds.NewGCP(t, "shop@acme.iam.gserviceaccount.com", nil), clouds.NewAzure(t, nil)
	w.Server.Policy(`
- &sets [!variable aws, !variable gcp, !variable azure]
- &control [!variable aws/control, !variable gcp/control, !variable azure/control]
- &admins [!variable admins/aws, !variable admins/azure]
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: *sets }
- !permit { role: !host rotates, privileges: [read, execute, update], resources: *control }
- !permit { role: !host rotates, privileges: [read, execute], resources: *admins }
- !permit { role: !host app, privileges: [read, execute], resources: *sets }
`)
	w.Server.Set("admins/aws", aws.AdminJSON())
	w.Server.Set("admins/azure", azure.AdminJSON())
	w.Canaries = append(w.Canaries, aws.Admin.Secret, azure.Admin.Secret)
	w.rotates(fmt.Sprintf(`
  {set: aws, confirm: {wait: 1s}, grace: 1s, aws: {user: shop, admin: admins/aws, endpoint: %q, credentials: true, unused: 1s, deleteAfter: 1s}},
  {set: gcp, confirm: {wait: 1s}, grace: 1s, gcp: {account: shop@acme.iam.gserviceaccount.com, endpoint: %q, deleteAfter: 1s}},
  {set: azure, confirm: {wait: 1s}, grace: 1s, every: 30d, azure: {application: %s, tenant: acme, admin: admins/azure, endpoint: %q}}
  `, aws.URL, gcp.URL, azure.Application, azure.URL))
	w.Env["LOG_LEVEL"], w.Env["SERVER_STATUS"] = "debug", "true"
	places := map[string]*clouds.Cloud{"aws": &aws.Cloud, "gcp": &gcp.Cloud, "azure": &azure.Cloud}
	for set := range places {
		w.secret(set, nil, func(s *corev1.Secret) { s.Data["conjur-map"] = fmt.Appendf(nil, `"*": {credential: %s}`, set) })
	}
	p := w.start()
	keep := func(c *clouds.Cloud) {
		for _, k := range c.Keys() {
			if _, pem, ok := strings.Cut(k.Secret, "-----\n"); ok {
				w.Canaries = append(w.Canaries, pem[:60])
				continue
			}
			w.Canaries = append(w.Canaries, k.Secret)
		}
	}
	var told strings.Builder
	for set, c := range places {
		first := w.settles(set, "")
		keep(c)
		w.rotate("now", set).Exit(0)
		w.settles(set, first)
		keep(c)
		c.Deny(map[string]string{"aws": "ListAccessKeys", "gcp": "GET ", "azure": ""}[set], true)
		now := w.rotate("now", set)
		eventually(t, "an Event that the cloud refuses", func() bool {
			return strings.Contains(strings.Join(w.events(set, "RotationFailed"), "\n"), `permit this call, as "syncer rotate init" prints it`)
		})
		status := w.rotate("status", set, "--output", "json")
		status.Exit(0)
		fmt.Fprintln(&told, now.Log(), status.Log(), w.read(set).Annotations)
	}
	list, err := plane.Core.Events(w.namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		fmt.Fprintln(&told, e.Reason, e.Message)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	told.Write(line)
	for _, path := range []string{"/metrics", "/", "/status.json"} {
		_, page := w.get(path)
		told.WriteString(page)
	}
	p.Stop()
	told.WriteString(p.Log())
	if found := w.Leak(told.String()); found != "" {
		t.Errorf("a key is shown: %s", found)
	}
	if len(w.Canaries) < 10 {
		t.Errorf("the test looks only for %d texts", len(w.Canaries))
	}
}

// settles waits until a Secret shows a primary of its set other than before.
func (w *world) settles(set, before string) (primary string) {
	w.Helper()
	eventually(w.TB, "another primary of "+set, func() bool {
		now := w.shownOf(set, set)
		primary = now.Primary
		return now.Stage == "idle" && primary != before && len(now.IDs) == 1
	})
	return primary
}
