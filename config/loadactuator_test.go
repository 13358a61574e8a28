package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

func loadRotation(t *testing.T, set string) (config.Rotation, []config.Problem) {
	t.Helper()
	src := fileSources(t, "{containerMode: standalone, rotation: {sets: [{set: apps/db, "+set+"}]}}", nil, connection)
	r, _, err := config.LoadRotation(src.Read())
	var invalid *config.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	if invalid == nil {
		return r, nil
	}
	return r, invalid.Problems
}

func TestActuatorsOfSets(t *testing.T) {
	r, wrong := loadRotation(t, `postgresql: {address: ["db:5432/shop", "/run/pg:5432/shop"], admin: apps/admin, users: [a, b], plain: true, ca: /ca.pem}`)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if p := r.Sets[0].PostgreSQL; len(p.Address) != 2 || len(p.Users) != 2 || p.Admin != "apps/admin" || !p.Plain || p.CA != "/ca.pem" {
		t.Errorf("it is %+v", p)
	}
	for _, users := range []string{"[a]", "a", "[a, b]"} {
		r, wrong := loadRotation(t, `mysql: {address: ["db:3306", "replica:3306"], admin: apps/admin, ca: /ca.pem, users: `+users+`}`)
		if len(wrong) > 0 || len(r.Sets[0].MySQL.Users) != len(strings.Split(users, ",")) || r.Sets[0].Generate.Password == nil {
			t.Errorf("users %s: %+v, %v", users, r.Sets, wrong)
		}
	}
	r, wrong = loadRotation(t, `rabbitmq: {address: "mq:5672", admin: apps/admin, users: [a, b], api: "http://mq:15672", plain: true}`)
	if len(wrong) > 0 || r.Sets[0].RabbitMQ.VHost != "/" || r.Sets[0].RabbitMQ.API != "http://mq:15672" || r.Sets[0].Generate.Password == nil {
		t.Errorf("%+v, %v", r.Sets, wrong)
	}
	r, wrong = loadRotation(t, `redis: {address: ["cache:6379", "replica:6379"], admin: apps/admin, users: shop, endSessions: true}`)
	if len(wrong) > 0 || len(r.Sets[0].Redis.Address) != 2 || !r.Sets[0].Redis.EndSessions || r.Sets[0].Generate.Password == nil {
		t.Errorf("%+v, %v", r.Sets, wrong)
	}
	if r.Sets[0].Timeout != 0 {
		t.Errorf("a step may take %v unless something is set", r.Sets[0].Timeout)
	}
	if r, wrong := loadRotation(t, `exec: {command: [hook]}, timeout: 2m`); len(wrong) > 0 || r.Sets[0].Timeout != 2*time.Minute {
		t.Errorf("it is %+v: %v", r.Sets, wrong)
	}
	if r.Sets[0].Generate.Password == nil {
		t.Error("no password is generated unless asked for")
	}
	for set, says := range map[string]string{
		`postgresql: {address: ["db/shop"], admin: a, users: [a, b]}`:                                                           `address 1 is not of the form host:port/database`,
		`postgresql: {address: ["db:1/shop"], admin: a, users: [a, b], pooler: ["p:6432", "postgres://u:c4n4ry@p:6432"]}`:       `address 2 is not of the form host:port`,
		`postgresql: {address: ["db:1/shop"], admin: a, users: [a, b], pooler: ["p:6432/shop"]}`:                                `address 1 is not of the form host:port`,
		`mysql: {address: ["db/shop"], admin: a, users: [a]}`:                                                                   `address 1 is not of the form host:port`,
		`mysql: {address: ["db:3306"], admin: a, users: []}`:                                                                    "fewer than two different users",
		`mysql: {address: ["db:3306"], admin: a, users: [a, a]}`:                                                                "fewer than two different users",
		`rabbitmq: {address: ["q:5671/v"], admin: a, users: [a, b], api: "https://q:1"}`:                                        `address 1 is not of the form host:port`,
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a], api: "https://q:1"}`:                                             "fewer than two different users",
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a, b], api: "http://q:1"}`:                                           `http:// requires "plain: true"`,
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a, b], api: "http://u:c4n4ry@q:1", plain: true}`:                     "without a user or password",
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a, b], api: "https://q:1", vhost: ` + strings.Repeat("v", 256) + `}`: "at most 255 bytes",
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a, b]}`:                                                              "api is missing",
		`redis: {address: ["cache"], admin: a, users: [a]}`:                                                                     `address 1 is not of the form host:port`,
		`redis: {address: ["cache:6379"], admin: a, users: [a, b]}`:                                                             "name one user",
		`redis: {address: ["cache:6379"], admin: a, users: [default]}`:                                                          "the user default cannot be rotated",
		`exec: {command: []}`:                                                                     "no program is named",
		`exec: {command: [""]}`:                                                                   "no program is named",
		`postgresql: {address: [], admin: a, users: [a, b]}`:                                      "no server is named",
		`postgresql: {address: ["db:5432/shop"], admin: a, users: [a]}`:                           "fewer than two different users",
		`postgresql: {address: ["db:5432/shop"], admin: a, users: [a, b, a]}`:                     "fewer than two different users",
		`postgresql: {address: ["db:5432/shop"], admin: a, users: [a, b]}, generate: {rsa: 2048}`: "users of a server have passwords",
		`http: {url: "https://w/", key: k}, timeout: 0s`:                                          "too short; use at least 1s",
		`generate: {random: 32}, timeout: 1m`:                                                     "a set without an actuator sends no requests",
		`conjur: {hosts: [a, b]}, timeout: 1m`:                                                    "conjur.httpTimeoutSeconds",
		`conjur: {hosts: [a]}`:                                                                    "fewer than two different hosts",
		`conjur: {hosts: [a, b]}, generate: {random: 32}`:                                         "Conjur creates the API keys",
		`http: {url: "http://webhook.shop/steps", key: k}`:                                        "a URL with https://",
		`http: {url: "webhook", key: k}`:                                                          "a URL with https://",
		`http: {url: "https://w/", key: k}, exec: {command: [rotate]}`:                            "the set has http too",
	} {
		if _, wrong := loadRotation(t, set); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), says) {
			t.Errorf("%s: %q; it should say %q", set, wrong, says)
		}
	}
	for _, url := range []string{"https://w/x", "http://127.0.0.1:8080/x", "http://[::1]:8080/x", "http://localhost:8080/x"} {
		if _, wrong := loadRotation(t, `http: {url: "`+url+`", key: k}`); len(wrong) > 0 {
			t.Errorf("%s: %q", url, wrong)
		}
	}
}

// TestAnAddressIsOfAServer: without a host or a port, it would fail only in the rotation.
func TestAnAddressIsOfAServer(t *testing.T) {
	for set, good := range map[string][]string{
		`postgresql: {address: ["%s/shop"], admin: a, users: [a, b]}`:                             {"db:5432", "[::1]:5432", "/run/pg:5432"},
		`postgresql: {address: ["db:1/shop"], admin: a, users: [a, b], pooler: ["%s"]}`:           {"p:6432", "/run/pgbouncer:6432"},
		`mysql: {address: ["db:3306", "%s"], admin: a, users: [a]}`:                               {"10.0.0.1:3306", "[fe80::1%eth0]:65535"},
		`redis: {address: ["cache:6379", "%s"], admin: a, users: [a]}`:                            {"cache:1"},
		`rabbitmq: {address: ["q:5671", "%s"], admin: a, users: [a, b], api: "https://q:1"}`:      {"q:5672"},
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a, b], api: "http://%s", plain: true}`: {"q:15672", "[::1]:15672/"},
		`rabbitmq: {address: ["q:5671"], admin: a, users: [a, b], api: "https://%s"}`:             {"q:15671", "q"},
		`http: {url: "https://%s/steps", key: k}`:                                                 {"w", "w:8443"},
		`aws: {admin: a, user: u, endpoint: "https://%s"}`:                                        {"sts", "sts:8443"},
		`generate: {random: 32}, confirm: {ask: "http://%s/keys"}`:                                {"app", "app:8080"},
	} {
		for _, address := range good {
			if _, wrong := loadRotation(t, strings.Replace(set, "%s", address, 1)); len(wrong) > 0 {
				t.Errorf("%s: %q", strings.Replace(set, "%s", address, 1), wrong)
			}
		}
		bad := []string{":6379", "", "a b:1", "cache:x", "u:c4n4ry@cache:6379"}
		if !strings.Contains(set, "//%s") {
			bad = append(bad, "cache", "cache:0", "cache:65536", "cache:", "redis://cache:1", "cache: 1", "cache:1 ", "a:b:1")
			if !strings.Contains(set, "postgresql") {
				bad = append(bad, "/folder:6379")
			}
		}
		for _, address := range bad {
			_, wrong := loadRotation(t, strings.Replace(set, "%s", address, 1))
			if len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "rotation.sets[0].") || strings.Contains(wrong[0].Error(), "c4n4ry") {
				t.Errorf("%s: %q", strings.Replace(set, "%s", address, 1), wrong)
			}
		}
	}
}

// TestAnAddressWithAPasswordIsRefusedWithoutIt: the address of a set appears in logs, in
// Events and in the status.
func TestAnAddressWithAPasswordIsRefusedWithoutIt(t *testing.T) {
	for _, set := range []string{
		`postgresql: {address: ["postgres://u:c4n4ry@db:5432/shop"], admin: a, users: [a, b]}`,
		`postgresql: {address: ["u:c4n4ry@db:5432/shop"], admin: a, users: [a, b]}`,
		`postgresql: {address: ["db:5432/shop?user=u&password=c4n4ry"], admin: a, users: [a, b]}`,
		`postgresql: {address: ["host=db password=c4n4ry"], admin: a, users: [a, b]}`,
		`postgresql: {address: ["db:1/shop"], pooler: ["u:c4n4ry@p:6432"], admin: a, users: [a, b]}`,
		`http: {url: "https://u:c4n4ry@webhook/", key: k}`,
		`http: {url: "https://u:c4n4ry@web hook/", key: k}`,
		`generate: {random: 32}, confirm: {ask: "http://u:c4n4ry@app:8080/keys"}`,
		`generate: {random: 32}, confirm: {ask: "u:c4n4ry@app:8080/keys"}`,
		`aws: {admin: a, user: u, endpoint: "https://u:c4n4ry@sts/"}`,
	} {
		_, wrong := loadRotation(t, set)
		if len(wrong) == 0 {
			t.Errorf("%s: it loads", set)
		}
		for _, p := range wrong {
			if strings.Contains(p.Error(), "c4n4ry") {
				t.Errorf("%s: %v", set, p)
			}
		}
	}
	for _, key := range []string{"CONJUR_APPLIANCE_URL", "CONJUR_AUTHN_URL", "SERVER_ADDRESS"} {
		got := problems(t, sources(t, group, connection.with(dict{key: "http://u:c4n4ry@host/x"})))
		if len(got) == 0 || strings.Contains(got[0].Error(), "c4n4ry") {
			t.Errorf("%s: %v", key, got)
		}
	}
}
