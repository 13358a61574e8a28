package deploy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/test/deploy"
)

// loadRelease loads the configuration of a release's Pod: its file, and the
// variables.
func loadRelease(t *testing.T, objects []*unstructured.Unstructured, extra map[string]string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "syncer.yaml")
	var pod corev1.Pod
	for _, o := range objects {
		if o.GetKind() == "ConfigMap" {
			text, _, err := unstructured.NestedString(o.Object, "data", "syncer.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if object := podOf(t, o); object != nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg, err := load(t, pod, config.Sources{ConfigFile: config.File{Name: path}, Annotations: config.File{Name: filepath.Join(t.TempDir(), "none")}}, extra)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestConfigurationIsValid: Syncer takes the configuration of every release.
func TestConfigurationIsValid(t *testing.T) {
	for shape := range shapes {
		if strings.Contains(shapes[shape], "shape: example") {
			continue // which has none
		}
		t.Run(shape, func(t *testing.T) {
			loadRelease(t, deploy.Release{Values: values(shape, "syncer", "other")}.Objects(t), nil)
		})
	}
}

// TestConfigurationFollowsTheRelease: what the chart fills in is what the rest
// of the release has.
func TestConfigurationFollowsTheRelease(t *testing.T) {
	release := deploy.Release{Name: "a", Namespace: "syncer", Values: connection}
	cfg := loadRelease(t, release.Objects(t), nil)
	if cfg.Mode != config.ModeStandalone || cfg.Destination != config.DestinationKubernetes {
		t.Errorf("mode %s to %s", cfg.Mode, cfg.Destination)
	}
	if got := cfg.Kubernetes; !slices.Equal(got.Namespaces, []string{"syncer"}) || got.LeaderElection.Lease != "a" || !got.LeaderElection.Enabled {
		t.Errorf("namespaces %v, election %+v; want syncer and the Lease a", got.Namespaces, got.LeaderElection)
	}
	if cfg.Server.Address != ":8080" || cfg.Conjur.JWTTokenPath != "/var/run/secrets/conjur/token" || cfg.Conjur.CertFile != "" {
		t.Errorf("server at %q, token in %q, certificates in %q", cfg.Server.Address, cfg.Conjur.JWTTokenPath, cfg.Conjur.CertFile)
	}

	if cfg.Refresh != (config.Refresh{Enabled: true, Interval: 5 * time.Minute}) {
		t.Errorf("with nothing said of it, refresh is %+v", cfg.Refresh)
	}
	for settings, want := range map[string]config.Refresh{
		"refresh: {enabled: false}": {}, "refresh: {interval: 7s}": {Enabled: true, Interval: 7 * time.Second},
	} {
		release.Values = conjurWith(settings)
		if got := loadRelease(t, release.Objects(t), nil).Refresh; got != want {
			t.Errorf("%s gives %+v", settings, got)
		}
	}

	release.Values = everything
	cfg = loadRelease(t, release.Objects(t), nil)
	if cfg.Server.Address != ":9090" || cfg.Conjur.APIKeyFile != "/etc/syncer/conjur/api-key" || cfg.Conjur.CertFile != "/etc/syncer/certificate/ca.crt" {
		t.Errorf("server at %q, key in %q, certificates in %q", cfg.Server.Address, cfg.Conjur.APIKeyFile, cfg.Conjur.CertFile)
	}

	release.Values = "credentials: {connectConfigMap: conjur-connect}"
	cfg = loadRelease(t, release.Objects(t), map[string]string{
		"CONJUR_APPLIANCE_URL": "https://conjur.example.net", "CONJUR_ACCOUNT": "other", "CONJUR_AUTHN_URL": "https://conjur.example.net/authn-jwt/x",
	})
	if cfg.Conjur.ApplianceURL != "https://conjur.example.net" || cfg.Conjur.Account != "other" {
		t.Errorf("from a ConfigMap: %s, account %s", cfg.Conjur.ApplianceURL, cfg.Conjur.Account)
	}
}
