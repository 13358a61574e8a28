package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/test/proctest"
)

// shownSet is what the annotation says of the set.
type shownSet struct {
	Step    uint64   `json:"step"`
	Stage   string   `json:"stage"`
	Awaits  string   `json:"awaits"`
	Primary string   `json:"primary"`
	IDs     []string `json:"ids"`
}

// shown returns what a Secret shows of the set jwt.
func (w *world) shown(name string) shownSet { return w.shownOf(name, "jwt") }

// shownOf returns what a Secret shows of a set.
func (w *world) shownOf(name, set string) shownSet {
	var all map[string]shownSet
	_ = json.Unmarshal([]byte(w.read(name).Annotations["conjur.org/rotation"]), &all)
	return all[set]
}

// rotates has Syncer rotate a set as the host rotates.
func (w *world) rotates(set string) {
	w.Helper()
	keyFile := w.dir + "/key"
	if err := os.WriteFile(keyFile, []byte(w.Server.HostKey("rotates")), 0o600); err != nil {
		w.Fatal(err)
	}
	w.settings = append(w.settings, "leaderElection: {enabled: false}", "removeDeletedSecrets: false", fmt.Sprintf(`
identities: [{name: rotates, conjur: {login: host/rotates, apiKeyFile: %q}}]
rotation:
  identity: rotates
  interval: 1s
  sets: [%s]`, keyFile, set))
}

// rotate runs syncer rotate as the host that rotates.
func (w *world) rotate(args ...string) *proctest.Process {
	w.Helper()
	return w.Spawn(binary, proctest.Environ(w.Server.Env("rotates"), "TMPDIR="+w.dir), append([]string{"rotate"}, args...)...)
}

// TestAStandaloneRotates a set that a Secret shows, by itself and on command, and
// leaves a set alone that went back.
func TestAStandaloneRotates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 2s}}")
	w.secret("keys", nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(`"*": {keys: jwt}`) })
	w.Env["SERVER_STATUS"] = "true"
	p := w.start()
	var first, second shownSet
	eventually(t, "the first key in the Secret", func() bool {
		first = w.shown("keys")
		return first.Stage == "idle" && w.read("keys").Data[first.Primary+".key.primary"] != nil
	})
	now := w.rotate("now", "jwt")
	eventually(t, "a second key that waits for the consumers", func() bool {
		now := w.shown("keys")
		return now.Stage == "introduce" && len(now.IDs) == 2 && now.Awaits == "all consumers have "+now.IDs[0]
	})
	now.Exit(0)
	eventually(t, "the second key in the Secret, alone", func() bool {
		second = w.shown("keys")
		return second.Stage == "idle" && second.Awaits == "" && second.Primary != first.Primary && slices.Equal(second.IDs, []string{second.Primary})
	})
	data := w.read("keys").Data
	if len(data[second.Primary+".key.primary"]) == 0 || data[first.Primary+".key"] != nil {
		t.Errorf("the Secret has the keys %d", len(data))
	}
	for _, reason := range []string{"RotationStarted", "RotationPromoted", "RotationDone"} {
		eventually(t, "an Event "+reason, func() bool {
			return slices.ContainsFunc(w.events("keys", reason), func(m string) bool { return strings.Contains(m, second.Primary) || reason == "RotationDone" })
		})
	}
	status, err := status.Client{URL: "http://" + w.address}.Get(t.Context())
	if err != nil || len(status.Rotations) != 1 || status.Rotations[0].Set != "jwt" || status.Rotations[0].Primary != second.Primary {
		t.Errorf("the status page has the rotations %+v: %v", status.Rotations, err)
	}
	resp, err := http.Get("http://" + w.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`syncer_rotation_age_seconds{set="jwt"}`, `syncer_rotation_stage_seconds{set="jwt",stage="idle"}`, `syncer_rotation_total{result="promoted",set="jwt"} 2`} {
		if !strings.Contains(string(metrics), name) {
			t.Errorf("the metrics have no %s", name)
		}
	}
	p.Stop()

	// A backup of Conjur is restored: the set begins anew, while the Secret still
	// tells of a later step.
	w.Server.Policy("- !delete { record: !variable jwt }\n")
	w.Server.Policy("- !variable jwt\n- !permit { role: !host rotates, privileges: [read, execute, update], resource: !variable jwt }\n- !permit { role: !host app, privileges: [read, execute], resource: !variable jwt }\n")
	w.start()
	eventually(t, "word of what was delivered already", func() bool {
		return slices.ContainsFunc(w.events("keys", "RotationWaiting"), func(m string) bool {
			return strings.Contains(m, fmt.Sprintf("step %d was delivered already", second.Step))
		})
	})
	if now := w.read("keys"); string(now.Data[second.Primary+".key.primary"]) != string(data[second.Primary+".key.primary"]) {
		t.Error("the Secret has lost its key")
	}
	w.rotate("claim", "jwt").Exit(0)
	eventually(t, "a set above all that was delivered", func() bool { return w.shown("keys").Step > 1_000_000 })
}

// TestWhatIsAdoptedIsAsOldAsItsSecret has a password become the first version of
// a set.
func TestWhatIsAdoptedIsAsOldAsItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Server.Policy(`
- !variable old
- !variable db
- !variable db/control
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable old, !variable db, !variable db/control] }
- !permit { role: !host app, privileges: [read, execute], resource: !variable old }
`)
	w.Server.Set("old", "adopted")
	w.secret("login", nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("password: old") })
	made := w.read("login").CreationTimestamp.Time
	eventually(t, "a Secret that is a while old", func() bool { return time.Since(made) > 3*time.Second })
	w.rotates("{set: db, generate: {password: {}}, adopt: {password: old}, every: 30d, confirm: {wait: 1s}}")
	w.start()
	var reports []struct {
		Made time.Time `json:"made"`
	}
	eventually(t, "the set begins", func() bool {
		p := w.rotate("status", "db", "--output", "json")
		return p.ExitCode() == 0 && json.Unmarshal([]byte(p.Log()), &reports) == nil && len(reports) == 1 && !reports[0].Made.IsZero()
	})
	if !reports[0].Made.Equal(made) {
		t.Errorf("the first version is of %v, and its Secret of %v", reports[0].Made, made)
	}
}

// TestARotationWaitsForASecretThatKeepsItsOldKey: a mistake in the definition of a data key
// leaves its content as it is, so the old key must stay valid. That holds after a restart.
func TestARotationWaitsForASecretThatKeepsItsOldKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotation, value string
		restart           bool
	}{
		"a broken template":                  {"secret-file-template.cfg", "{{ bad", false},
		"a broken template, after a restart": {"secret-file-template.cfg", "{{ bad", true},
		"a faulty format":                    {"secret-file-format.cfg", "toml", false},
		"a faulty format, after a restart":   {"secret-file-format.cfg", "toml", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.keySet("{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s}}")
			w.Env["SERVER_STATUS"] = "true"
			annotate := func(name, value string) func(*corev1.Secret) {
				return func(s *corev1.Secret) { s.Annotations["conjur.org/"+name] = value }
			}
			good := func(s *corev1.Secret) {
				if s.Annotations == nil {
					s.Annotations = map[string]string{}
				}
				annotate("conjur-secrets.cfg", "- jwt: {keys: jwt}")(s)
				annotate("secret-file-format.cfg", "template")(s)
				annotate("secret-file-template.cfg", `{{ range versions "jwt" }}{{ .ID }} {{ end }}`)(s)
			}
			w.secret("keys", nil, good)
			w.showing(w.namespace, "others")
			p := w.start()
			before := w.idles("keys", shownSet{})
			w.edit("keys", annotate(c.annotation, c.value))
			if c.restart {
				p.Stop()
				p = w.start()
			}
			w.rotate("now", "jwt").Exit(0)
			eventually(t, "a status that names the Secret", func() bool {
				s, err := status.Client{URL: "http://" + w.address}.Get(t.Context())
				return err == nil && len(s.Rotations) == 1 && strings.Contains(s.Rotations[0].Waits, "secret/keys of namespace "+w.namespace+" has step")
			})
			w.polls(5)
			if now, others := w.shown("keys"), w.shown("others"); now.Step >= others.Step || len(now.IDs) != 1 || now.Primary != before.Primary || others.Primary != before.Primary || len(others.IDs) != 2 {
				t.Errorf("it shows %+v, and another Secret %+v", now, others)
			}
			w.edit("keys", good)
			w.idles("keys", before)
			p.Stop()
		})
	}
}
