package config_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/config"
)

// TestWhatNeverWorksDoesNotLoad: a template, a part or a time that no version can bring.
func TestWhatNeverWorksDoesNotLoad(t *testing.T) {
	for text, want := range map[string]string{
		`generate: {uuid: true}, publish: {x: "{{.nope}}"}`:                                                `sets[0].publish.x: the template cannot be filled in with the parts ["uuid"]`,
		`generate: {uuid: true}, publish: {x: "{{.uuid"}`:                                                  `sets[0].publish.x: the template cannot be read`,
		`generate: {uuid: true}, publish: {x: nope}`:                                                       `sets[0].publish.x: the set has no part "nope", but ["uuid"]`,
		`generate: {rsa: 2048}, publish: {x: {parts: [public, nope]}}`:                                     `sets[0].publish.x: the set has no part "nope", but ["private" "public"]`,
		`generate: {rsa: 2048}, publish: {x: {parts: [public]}, y: "{{.public}}{{slice .private 0 9}}"}`:   "",
		`generate: {uuid: true}, publish: {x: "{{printf ` + "`%d`" + ` .uuid}}"}`:                          `sets[0].publish.x: the template cannot be filled in with the parts ["uuid"]: template: publish:1:2: printf: argument 2 must be a whole number for %d, not text`,
		`generate: {uuid: true}, publish: {x: "{{.uuid | upper 5}}"}`:                                      `sets[0].publish.x: the template cannot be filled in with the parts ["uuid"]: template: publish:1:10: upper: wrong number of arguments`,
		`generate: {uuid: true}, publish: {x: "{{.uuid | urlquery}}", y: "{{b64enc .uuid | quote}}"}`:      "",
		`generate: {uuid: true}, publish: {x: "{{fromJson .uuid}}"}`:                                       "", // it depends on the value
		`generate: {uuid: true}, publish: {x: "{{.}}"}`:                                                    `a map cannot be printed`,
		`generate: {uuid: true}, publish: {x: "{{secret .uuid}}"}`:                                         `the group has no such alias`,
		`generate: {uuid: true}, publish: {x: "{{.nope | upper}}"}`:                                        `map has no entry for key "nope"`,
		`generate: {x509: {subject: s}}, publish: {x: "{{.crt}}{{.private}}"}`:                             "",
		`generate: {htpasswd: {user: u}}, publish: {x: "{{.htpasswd}}", y: password}`:                      "",
		`generate: {uuid: true}, adopt: {old: y}, publish: {x: old}`:                                       "",
		`conjur: {hosts: [h, i]}, publish: {x: "{{.login}} {{.apiKey}}", y: "{{.password}}"}`:              `sets[0].publish.y: the template cannot be filled in with the parts ["apiKey" "login"]`,
		`postgresql: {address: "db:1/x", admin: z, users: [u, v]}, publish: {x: username, y: "{{.user}}"}`: `sets[0].publish.y: the template cannot be filled in with the parts ["password" "username"]`,
		`exec: {command: [/x]}, publish: {x: token, y: "{{.token}}"}`:                                      "", // what it answers is not known
		`exec: {command: [/x]}, publish: {x: "{{.token"}`:                                                  `sets[0].publish.x: the template cannot be read`,
		`generate: {uuid: true}, cron: "0 0 30 2 *"`:                                                       `sets[0].cron: no date matches "0 0 30 2 *"`,
		`generate: {uuid: true}, cron: "0 0 29 2 *"`:                                                       "",
		`generate: {uuid: true}, cron: "TZ=UTC 0 3 * * *"`:                                                 `sets[0].cron: "TZ=UTC 0 3 * * *" names a time zone`,
		`generate: {uuid: true}, cron: "CRON_TZ=Europe/Berlin 0 3 * * *"`:                                  `sets[0].cron: "CRON_TZ=Europe/Berlin 0 3 * * *" names a time zone`,
		`generate: {uuid: true}, cron: "TZ= 0 3 * * *"`:                                                    `sets[0].cron: "TZ= 0 3 * * *" names a time zone`,
		`generate: {uuid: true}, cron: "CRON_TZ=Local @daily"`:                                             `sets[0].cron: "CRON_TZ=Local @daily" names a time zone`,
		`generate: {uuid: true}, cron: "TZ=UTC"`:                                                           `sets[0].cron: "TZ=UTC" names a time zone`,
		`generate: {uuid: true}, cron: " tz=UTC 0 3 * * *"`:                                                `sets[0].cron: " tz=UTC 0 3 * * *" names a time zone`,
		`generate: {uuid: true}, cron: "0 3 * * * TZ=UTC"`:                                                 `sets[0].cron: "0 3 * * * TZ=UTC" names a time zone`,
		`generate: {uuid: true}, cron: "@daily"`:                                                           "",
	} {
		_, _, err := config.LoadRotation(fileSources(t, "rotation: {sets: [{set: a, "+text+"}]}\n", nil, connection).Read())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
