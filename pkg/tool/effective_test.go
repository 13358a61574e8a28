package tool

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/output"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// TestAnEffectiveConfigurationIsOne prints each configuration of the samples and examples,
// loads what it printed, and prints the same again.
func TestAnEffectiveConfigurationIsOne(t *testing.T) {
	seen := 0
	for name, cfg := range sampleConfigurations(t) {
		seen++
		printed := effective(t, cfg)
		templates := fstest.MapFS{}
		for _, target := range cfg.Targets {
			if target.Template.File != "" {
				templates[target.Template.File] = &fstest.MapFile{Data: []byte("x")}
			}
		}
		again, warnings, err := config.Load(config.Sources{
			ConfigFile: config.File{Name: "printed.yaml", Text: printed},
			Templates:  templates,
			Getenv: func(name string) string { // what only the environment may contain
				return map[string]string{"MY_POD_NAME": cfg.Kubernetes.PodName, "MY_NODE_NAME": cfg.Kubernetes.NodeName}[name]
			},
			Assume: config.Assumptions{Connection: true, Namespace: true, Files: true, Node: true},
		})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v; printed is\n%s", name, err, warnings, printed)
			continue
		}
		if got := effective(t, again); !bytes.Equal(got, printed) {
			t.Errorf("%s: first\n%s\nthen\n%s", name, printed, got)
		}
		if d := config.Compare(cfg, again); len(d.Settings) > 0 {
			t.Errorf("%s: %q have changed; printed is\n%s", name, d.Settings, printed)
		}
	}
	if seen < 15 {
		t.Errorf("there are %d configurations", seen)
	}
}

// effective is the YAML of the command config.
func effective(t *testing.T, cfg *config.Config) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := output.YAML.Write(&out, config.NewEffective(cfg)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sampleConfigurations returns those of the workloads in the repository's manifests, and
// the one of config/testdata.
func sampleConfigurations(t *testing.T) map[string]*config.Config {
	t.Helper()
	all := map[string]*config.Config{}
	filled := strings.NewReplacer("VALUE_OF_CONJUR_APPLIANCE_URL", "https://conjur.example.com", "VALUE_OF_CONJUR_AUTHN_URL", "https://conjur.example.com/authn-jwt/k8s",
		"VALUE_OF_CONJUR_SSL_CERTIFICATE", "", "VALUE_OF_NAMESPACE", "shop", "SERVER_ADDRESS", ":8080")
	for _, folder := range []string{"../../deploy/examples", "../../test/samples/testdata"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			m, err := manifest.Parse([]byte(filled.Replace(string(text))))
			if err != nil {
				return err
			}
			tool := Tool{Manifests: []string{path}}
			found, _ := tool.providers(m)
			for _, p := range found {
				cfg, v := p.Load(tool.Sources, false, false)
				if cfg == nil {
					t.Errorf("%s: %v", path, v.Errors)
					continue
				}
				all[path+" "+p.Workload.String()] = cfg
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rotated, err := os.ReadFile("../../config/testdata/rotated.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const own = `
containerMode: standalone
secretsDestination: k8s_secrets
conjur: {applianceUrl: https://conjur.example.com, account: acme, authnUrl: https://conjur.example.com/authn-jwt/k8s}
identities:
- {name: rotates, conjur: {login: host/rotates}}
kubernetes:
  namespace: ns
  namespaces: [shop, ns]
  secrets:
  - plain
  - name: db
    namespace: shop
    create: true
    map: {password: {id: app/db/password}, user.name: app/db/user, "*": app/more/*}
    groups:
      app.conf: {secrets: [{u: app/db/user}], template: "{{ secret \"u\" }}\n"}
      z.json: {secrets: "*", policyPath: app, format: json}
    restart: [deployment/shop]
`
	cfg, warnings, err := config.Load(config.Sources{
		ConfigFile: config.File{Name: "syncer.yaml", Text: []byte(strings.ReplaceAll(string(rotated), "DIR/", "/") + own)},
		Assume:     config.Assumptions{Files: true},
	})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	all["everything"] = cfg
	return all
}
