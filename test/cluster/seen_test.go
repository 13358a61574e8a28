package cluster

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/proctest"
)

// web keeps no connection, which another test would have to close.
var web = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (w *world) get(path string) (int, string) {
	w.Helper()
	answer, err := web.Get("http://" + w.address + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// awaitReadyz waits until /readyz answers as it should, and says what it answered
// last if it does not.
func (w *world) awaitReadyz(right func(code int, why string) bool) {
	w.Helper()
	var code int
	var why string
	defer func() {
		if w.Failed() {
			w.Logf("the last answer of /readyz: %d %s", code, why)
		}
	}()
	eventually(w, "the answer of /readyz", func() bool {
		code, why = w.get("/readyz")
		return right(code, why)
	})
}

func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	eventually(t, "ready", w.ready)
	w.polls(2)
	if code, why := w.get("/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d %s", code, why)
	}
	_, metrics := w.get("/metrics")
	for _, series := range []string{
		`syncer_syncs_total{identity="default",result="written"} 1`,
		`syncer_conjur_requests_total{code="304",identity="default",kind=`,
		`syncer_target_freshness_seconds{identity="default",target="secret/` + w.namespace + `/db"}`,
		`workqueue_depth{name="default"} 0`,
		`syncer_delivery_seconds_count{identity="default"} 1`,
		`syncer_removals_held{`, `syncer_leader 1`,
		`syncer_syncs_total{identity="default",result="failed"} 0`,
	} {
		if !strings.Contains(metrics, series) {
			t.Errorf("the metrics lack %s", series)
		}
	}
	if strings.Contains(metrics, `kind="list"`) {
		t.Error("all variables are listed, though no Secret holds all")
	}
	for _, value := range w.Canaries {
		if strings.Contains(metrics, value) {
			t.Error("the metrics hold a value")
		}
	}
	p.Stop()
}

// A new release with a wrong address is not rolled out any further.
func TestNotReadyBeforeConjurIsReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secret("db", map[string]string{"a": "a"})
	w.Env["CONJUR_APPLIANCE_URL"] = "https://" + proctest.FreeAddress(t)
	p := w.start()
	eventually(t, "a failure of the Secret", func() bool { return strings.Contains(p.Log(), w.namespace+"/db") })
	eventually(t, "a failure of the poll", func() bool { return strings.Contains(p.Log(), `"poll"`) })
	w.awaitReadyz(func(code int, why string) bool {
		return code == http.StatusServiceUnavailable && strings.Contains(why, "has not been able to reach Conjur")
	})
	p.Stop()
}

// Who may read and not write has delivered nothing, and says so.
func TestNotReadyWithoutTheRightToWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}}
	w.as("reader", append(rules, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}))
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitReadyz(func(code int, why string) bool {
		if code == http.StatusOK {
			t.Fatalf("ready: %s", why)
		}
		return code == http.StatusServiceUnavailable && strings.Contains(why, w.namespace+"/db") && strings.Contains(why, "must grant the verb")
	})
	plane.Bind(t, w.namespace, "reader", rights(t)...)
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	eventually(t, "ready", w.ready)
	p.Stop()
}

// TestReadyDespiteAnyMistakeOfATenant: whatever depends only on the objects of one
// tenant is a remark, with and without a Secret of somebody else that is delivered.
func TestReadyDespiteAnyMistakeOfATenant(t *testing.T) {
	t.Parallel()
	conjurMap := func(text string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(text) }
	}
	group := func(annotations ...string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.Data["conjur-map"] = []byte("{}")
			s.Annotations["conjur.org/conjur-secrets.out"] = "- v: big/1"
			for i := 0; i < len(annotations); i += 2 {
				s.Annotations["conjur.org/"+annotations[i]+".out"] = annotations[i+1]
			}
		}
	}
	mistakes := map[string]func(*corev1.Secret){
		"too-large":      conjurMap("a: big/1\nb: big/2\n"),
		"no-configmap":   group("secret-file-template-configmap", "none"),
		"no-key":         group("secret-file-template-configmap", "present"),
		"no-set":         conjurMap(`"*": {keys: big/1}`),
		"no-match":       conjurMap(`"*": none/*`),
		"no-id":          conjurMap("a: \"x\\ty\"\n"),
		"no-format":      group("secret-file-format", "toml"),
		"faulty":         conjurMap("[a"),
		"template-error": group("secret-file-template", `{{ fail "no" }}`),
	}
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone=%v", alone), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Variables("a")
			w.Declare("big/1", "big/2", "unset")
			w.Set(map[string][]byte{"big/1": bytes.Repeat([]byte("x"), 600<<10), "big/2": bytes.Repeat([]byte("y"), 600<<10)})
			if _, err := plane.Core.ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "present"}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			mistakes := maps.Clone(mistakes)
			if !alone {
				w.secret("good", map[string]string{"a": "a"})
				mistakes["suspect"] = conjurMap("a: unset\n") // without this, Conjur's answer may be a gateway's
				w.settings[2] = "removal: {grace: 1h}"
			}
			for name, mistake := range mistakes {
				w.secret(name, nil, mistake)
			}
			p := w.start()
			w.awaitReadyz(func(code int, why string) bool {
				for name := range mistakes {
					if !strings.Contains(why, w.namespace+"/"+name) {
						return false
					}
				}
				return code == http.StatusOK
			})
			p.Stop()
		})
	}
}

// A replica without work is ready when another one works, and not before.
func TestAReplicaThatStandsByIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	eventually(t, "ready", w.ready)
	w.moveAddress()
	second := w.start()
	eventually(t, "ready to stand by", func() bool {
		code, body := w.get("/readyz")
		return code == http.StatusOK && strings.Contains(body, "standing by for ")
	})
	first.Stop()
	eventually(t, "ready and at work", func() bool {
		code, body := w.get("/readyz")
		return code == http.StatusOK && body == "ok\n"
	})
	second.Stop()
}
