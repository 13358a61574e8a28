package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// cluster answers GET of single objects as an API server does, and gives the
// path of a kubeconfig with the namespace shop.
func cluster(t *testing.T, objects map[string]string) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/")
		text, ok := objects[path]
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet || !ok {
			w.WriteHeader(http.StatusNotFound)
			kind := strings.Split(path+"//", "/")[1]
			text = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"kind":%q},"code":404}`, kind)
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	return files(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, namespace: shop}}]}`, server.URL)) + "/kubeconfig"
}

// live is a Secret as the API server has it; owner is the field manager of all
// its data but of the conjur-map.
func live(t *testing.T, name, owner string, annotations, data map[string]string) string {
	t.Helper()
	bytes, fields := map[string][]byte{}, map[string]any{}
	for key, value := range data {
		bytes[key] = []byte(value)
		if key != "conjur-map" {
			fields["f:"+key] = map[string]any{}
		}
	}
	text, err := json.Marshal(map[string]any{
		"kind": "Secret", "apiVersion": "v1", "type": "Opaque", "data": bytes,
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "1", "annotations": annotations,
			"managedFields": []any{map[string]any{"manager": owner, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": fields}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDiffOfSecretsInTheCluster(t *testing.T) {
	const conjurMap = "a: p/a\nb: p/b"
	group := map[string]string{"conjur.org/conjur-secrets.cfg": "- u: p/a", "conjur.org/secret-file-template-configmap.cfg": "tpl/cfg"}
	kubeconfig := cluster(t, map[string]string{
		"shop/secrets/right":    live(t, "right", "syncer", nil, map[string]string{"conjur-map": conjurMap, "a": "va", "b": "vb", "cfg": "u=va"}),
		"shop/secrets/other":    live(t, "other", "kubectl", nil, map[string]string{"conjur-map": conjurMap, "a": "va", "b": "vb", "mine": "canary"}),
		"shop/secrets/changed":  live(t, "changed", "syncer", group, map[string]string{"conjur-map": conjurMap, "a": "va", "b": "canary", "old": "canary"}),
		"shop/secrets/empty":    live(t, "empty", "syncer", nil, map[string]string{"conjur-map": conjurMap}),
		"shop/secrets/all":      live(t, "all", "syncer", nil, map[string]string{"conjur-map": "'*': p/a/*"}),
		"shop/secrets/faulty":   live(t, "faulty", "syncer", nil, map[string]string{"conjur-map": "a: 5"}),
		"shop/secrets/plain":    live(t, "plain", "syncer", nil, map[string]string{"x": "canary"}),
		"shop/configmaps/tpl":   `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"tpl","namespace":"shop"},"data":{"cfg":"u={{ secret \"u\" }}"}}`,
		"other/secrets/changed": live(t, "changed", "syncer", nil, map[string]string{"conjur-map": "z: p/a", "z": "va"}),
	})
	values := files(t, "values.json", `{"p/a": "va", "p/b": "vb"}`) + "/values.json"
	manifest := func(text string) []string { return []string{"-f", files(t, "m.yaml", text) + "/m.yaml"} }
	const secret = "{kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {conjur-map: 'a: p/a'}}"
	for _, c := range []struct {
		name   string
		args   []string
		want   string // of standard output, or of the error when the status is 2
		status int
	}{
		{"nothing", []string{"empty"}, "secret/shop/empty: content: a, b\n", 1},
		{"another tool's", []string{"other"}, "secret/shop/other: owner\n", 1},
		{"changes, and a template in the cluster", []string{"changed"}, "secret/shop/changed: content: b, cfg; to be removed: old\n", 1},
		{"several", []string{"other/changed", "secret/shop/empty"}, "secret/shop/empty: content: a, b\n", 1},
		{"no difference", []string{"changed", "--namespace", "other"}, "", 0},
		{"a key that is no longer defined", []string{"right"}, "secret/shop/right: content; to be removed: cfg\n", 1},
		{"a fault", []string{"faulty"}, "secret/shop/faulty: conjur-map: line 1", 2},
		{"no map", []string{"plain"}, "secret/shop/plain: conjur-map: there is neither", 2},
		{"not there", []string{"nope"}, "there is no Secret shop/nope", 2},
		{"no value", []string{"all"}, "has no variable that the * of secret/shop/all stands for", 2},
		{"no name", []string{"shop/No"}, `the name "No"`, 2},
		{"a manifest", manifest(fmt.Sprintf(secret, "changed", "shop") + "\n---\n" + fmt.Sprintf(secret, "new", "''")),
			"secret/shop/changed: content; to be removed: b, old\nsecret/shop/new: missing\n", 1},
		{"a manifest and names", append(manifest(fmt.Sprintf(secret, "changed", "shop")), "x"), "remove the names", 2},
	} {
		args := append([]string{"diff", "--kubeconfig", kubeconfig, "--values", values}, c.args...)
		out, errs, status := runTool(t, "", args...)
		if status != c.status || strings.Contains(out+errs, "canary") {
			t.Errorf("%s: status %d, want %d: %s%s", c.name, status, c.status, out, errs)
		}
		if c.status == 2 && !strings.Contains(errs, c.want) || c.status < 2 && out != c.want {
			t.Errorf("%s: %q and %q, want %q", c.name, out, errs, c.want)
		}
	}
}

// The configuration says which Secrets there are, and more of what is in them.
func TestDiffAndExplainOfConfiguredSecrets(t *testing.T) {
	kubeconfig := cluster(t, map[string]string{
		"shop/secrets/own":  live(t, "own", "syncer", nil, map[string]string{"conjur-map": "a: p/a", "a": "va", "b": "canary"}),
		"bill/secrets/full": live(t, "full", "syncer", nil, map[string]string{"conjur-map": "a: p/a\nb: p/none", "a": "va", "b": "vb"}),
	})
	dir := files(t, "values.json", `{"p/a": "va", "p/b": "vb"}`, "syncer.yaml", `containerMode: standalone
secretsDestination: k8s_secrets
kubernetes:
  namespaces: [shop, bill]
  secrets:
  - {name: own, namespace: shop, map: {b: p/b}, restart: [deployment/web]}
  - {name: full, namespace: bill, map: {b: p/b}}
  - {name: new, namespace: shop, create: true, map: {a: p/a}, groups: {env: {format: dotenv, secrets: [{A: p/a}]}}}
`)
	args := []string{"--config", dir + "/syncer.yaml"}
	diff := append([]string{"diff", "--kubeconfig", kubeconfig, "--values", dir + "/values.json"}, args...)
	out, errs, status := runTool(t, "", diff...)
	if want := "secret/shop/new: missing\nsecret/shop/own: content: b\n"; status != 1 || out != want || strings.Contains(errs, "canary") {
		t.Errorf("status %d: %q and %q, want %q", status, out, errs, want)
	}
	out, errs, status = runTool(t, "", append(diff, "bill/full")...)
	if status != 0 || out != "" || !strings.Contains(errs, `warning: secret/bill/full: conjur-map: not used: the configuration already says what the data key "b" holds`) {
		t.Errorf("status %d: %q and %q, want no difference and a warning", status, out, errs)
	}
	for name, want := range map[string]string{"own": "workloads deployment/web", "shop/new": "data key env format dotenv", "secret/bill/full": "data key b p/b (text)"} {
		if out, errs, status := runTool(t, "", append([]string{"explain", name}, args...)...); status != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("explain %s: status %d, %s%s; want %q", name, status, out, errs, want)
		}
	}
	if _, errs, status := runTool(t, "", append([]string{"explain", "nope"}, args...)...); status != 1 || !strings.Contains(errs, "there are bill/full, shop/new, shop/own") {
		t.Errorf("explain of nothing: status %d, %s", status, errs)
	}
}

func TestDiffOfASecretAsJSON(t *testing.T) {
	kubeconfig := cluster(t, map[string]string{
		"shop/secrets/s": live(t, "s", "syncer", nil, map[string]string{"conjur-map": "a: p/a", "a": "canary", "old": "canary"}),
	})
	values := files(t, "values.json", `{"p/a": "va"}`) + "/values.json"
	out, _, status := runTool(t, "", "diff", "s", "--kubeconfig", kubeconfig, "--values", values, "--output", "json")
	var got struct {
		Targets []struct {
			Key, State       string
			Aliases, Removed []string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 || len(got.Targets) != 1 {
		t.Fatalf("%v, status %d: %s", err, status, out)
	}
	if d := got.Targets[0]; fmt.Sprint(d) != "{secret/shop/s content [a] [old]}" {
		t.Errorf("got %v", d)
	}
}

func TestDiffWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	values := files(t, "values.json", `{}`) + "/values.json"
	out, errs, status := runTool(t, "", "diff", "s", "--values", values)
	if status != 2 || out != "" || !strings.Contains(errs, "kubeconfig") {
		t.Errorf("status %d, %q and %q; want an error that says what to do", status, out, errs)
	}
	out, errs, status = runTool(t, "a: [", "diff", "-f", "-", "--values", values)
	if status != 2 || out != "" || !strings.HasPrefix(errs, "standard input: line 1: ") {
		t.Errorf("status %d, %q and %q; want to hear of the manifest first", status, out, errs)
	}
}
