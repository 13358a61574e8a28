package deploy_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/deploy"
)

// TestMonitoringIsWhatTheFilesSay: the chart installs the rules and the dashboard unchanged,
// and enables the status page if a value says so.
func TestMonitoringIsWhatTheFilesSay(t *testing.T) {
	find := func(values, kind, name string) *unstructured.Unstructured {
		for _, o := range (deploy.Release{Values: values}).Objects(t) {
			if o.GetKind() == kind && o.GetName() == name {
				return o
			}
		}
		return nil
	}
	if find(connection, "PrometheusRule", "syncer") != nil || find(connection, "ConfigMap", "syncer-dashboard") != nil {
		t.Error("installed unasked")
	}
	on := connection + "monitoring: {rules: {enabled: true, labels: {team: shop}}, dashboard: {enabled: true}}\n"
	rule, dashboard := find(on, "PrometheusRule", "syncer"), find(on, "ConfigMap", "syncer-dashboard")
	if rule == nil || dashboard == nil {
		t.Fatalf("rule %v, dashboard %v", rule, dashboard)
	}
	text, err := os.ReadFile(chartDir + "/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rule.Object["spec"], want) || rule.GetLabels()["team"] != "shop" {
		t.Errorf("the rule is %v", rule.Object)
	}
	drawn, _, _ := unstructured.NestedString(dashboard.Object, "data", "syncer.json")
	if !json.Valid([]byte(drawn)) || dashboard.GetLabels()["grafana_dashboard"] != "1" {
		t.Errorf("the dashboard is %s", drawn)
	}
	cfg := loadRelease(t, deploy.Release{Values: conjurWith("server: {status: true}")}.Objects(t), nil)
	if !cfg.Server.Status || cfg.Server.Address != ":8080" {
		t.Errorf("the server is %+v", cfg.Server)
	}
}
