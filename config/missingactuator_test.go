package config_test

import (
	"strings"
	"testing"
)

// A setting of an actuator that is missing is one problem, which has a place.
func TestAMissingSettingOfAnActuatorIsReportedOnce(t *testing.T) {
	for set, want := range map[string]string{
		`exec: {}`:                              "exec: command is missing",
		`exec: {command: ""}`:                   "exec: command is missing",
		`exec: {command: []}`:                   "exec.command: no program is named",
		`conjur: {}`:                            "conjur: hosts is missing",
		`http: {url: "https://w/"}`:             "http: key is missing",
		`http: {key: k}`:                        "http: url is missing",
		`postgresql: {admin: a, users: [a, b]}`: "postgresql: address is missing",
		`postgresql: {admin: a, address: ["db:5432/shop"]}`: "postgresql: users is missing",
	} {
		if _, wrong := loadRotation(t, set); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "rotation.sets[0]."+want) {
			t.Errorf("%s: %q; want one problem with %q", set, wrong, want)
		}
	}
	src := fileSources(t, "{containerMode: standalone, rotation: {sets: [{}]}}", nil, connection)
	for _, problem := range problems(t, src) {
		if strings.HasPrefix(problem.Message, "the set has neither") && !strings.Contains(problem.Key, "rotation.sets[0]") {
			t.Errorf("%q has no place", problem)
		}
	}
}
