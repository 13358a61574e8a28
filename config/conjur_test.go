package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/config"
)

// jwt is a connection with authn-jwt and the folder of its token.
func jwt(t *testing.T) dict {
	t.Helper()
	return dict{
		"CONJUR_APPLIANCE_URL": "https://conjur.example.com/",
		"CONJUR_AUTHN_URL":     "https://conjur.example.com/api/authn-jwt/my-service/",
		"CONJUR_ACCOUNT":       "acct",
		"JWT_TOKEN_PATH":       filepath.Join(t.TempDir(), "token"),
	}
}

func certificate(t *testing.T) string {
	t.Helper()
	cert, _ := keyPair(t, time.Now().Add(time.Hour))
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// keyPair are the files of a certificate and its key.
func keyPair(t *testing.T, expires time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

func TestAPIKeyAlone(t *testing.T) {
	cfg, _ := load(t, sources(t, group, connection.with(dict{"CONJUR_APPLIANCE_URL": "https://c/api/", "CONJUR_HTTP_TIMEOUT": "7"})))
	c := cfg.Conjur
	if c.AuthnType != config.AuthnAPIKey || c.ApplianceURL != "https://c/api" || c.AuthnURL != "https://c/api/authn" {
		t.Errorf("%s at %s, appliance %s", c.AuthnType, c.AuthnURL, c.ApplianceURL)
	}
	if c.Account != "acct" || c.Login != "host/app" || c.HTTPTimeout != 7*time.Second {
		t.Errorf("account %s, login %s, time-out %v", c.Account, c.Login, c.HTTPTimeout)
	}
}

func TestJWT(t *testing.T) {
	env := jwt(t)
	cfg, warnings := load(t, sources(t, group, env))
	c := cfg.Conjur
	if c.AuthnType != config.AuthnJWT || c.AuthnURL != "https://conjur.example.com/api/authn-jwt/my-service" || c.ApplianceURL != "https://conjur.example.com" {
		t.Errorf("%s at %s, appliance %s", c.AuthnType, c.AuthnURL, c.ApplianceURL)
	}
	if c.JWTTokenPath != env["JWT_TOKEN_PATH"] || c.Login != "" || len(warnings) > 0 {
		t.Errorf("token %s, login %q, warnings %q", c.JWTTokenPath, c.Login, warnings)
	}
	other := filepath.Join(t.TempDir(), "t")
	cfg, _ = load(t, sources(t, group.with(dict{"jwt-token-path": other, "authn-identity": "host/x"}), env.with(dict{"CONJUR_AUTHN_LOGIN": "host/y"})))
	if cfg.Conjur.JWTTokenPath != other || cfg.Conjur.Login != "host/x" {
		t.Errorf("token %s, login %q", cfg.Conjur.JWTTokenPath, cfg.Conjur.Login)
	}
	_, warnings = load(t, sources(t, group, env.with(dict{"CONJUR_AUTHN_API_KEY": "k"})))
	assertOne(t, warnings, "CONJUR_AUTHN_API_KEY", "not used")
}

func TestAPIKeyFile(t *testing.T) {
	file := writeFile(t, "key", "the-key-is-a-secret\n")
	env := connection.with(dict{"CONJUR_AUTHN_API_KEY": "", "CONJUR_AUTHN_API_KEY_FILE": file})
	cfg, warnings := load(t, sources(t, group, env))
	if c := cfg.Conjur; c.AuthnType != config.AuthnAPIKey || c.APIKeyFile != file || c.APIKey.Len() > 0 || c.AuthnURL != "https://conjur.example.com/authn" || len(warnings) > 0 {
		t.Errorf("got %+v, %v", c, warnings)
	}
	const key = "CONJUR_AUTHN_API_KEY_FILE"
	assertOne(t, problems(t, sources(t, group, env.with(dict{"CONJUR_AUTHN_API_KEY": "k"}))), key, "remove one of the two")
	assertOne(t, problems(t, sources(t, group, env.with(dict{key: "/nowhere/key"}))), key, "/nowhere/key")
	assertOne(t, problems(t, sources(t, group, env.with(dict{key: writeFile(t, "key", " \n")}))), key, "contains no API key")
	assertOne(t, problems(t, sources(t, group, env.with(dict{"CONJUR_AUTHN_LOGIN": ""}))), "conjur.org/authn-identity", "authn needs it")
	cfg, _ = load(t, fileSources(t, "conjur: {apiKeyFile: '"+file+"', authnUrl: 'https://c/authn'}", group, connection.with(dict{"CONJUR_AUTHN_API_KEY": ""})))
	if cfg.Conjur.APIKeyFile != file || cfg.Conjur.AuthnURL != "https://c/authn" {
		t.Errorf("from the file: %+v", cfg.Conjur)
	}
	cfg, warnings = load(t, fileSources(t, "conjur: {apiKeyFile: '"+file+"'}", group, connection))
	if cfg.Conjur.APIKeyFile != file || cfg.Conjur.APIKey.Len() > 0 {
		t.Errorf("from the file, with a key in the environment: %+v", cfg.Conjur)
	}
	assertOne(t, warnings, "CONJUR_AUTHN_API_KEY", "conjur.apiKeyFile takes precedence")
	_, warnings = load(t, sources(t, group, jwt(t).with(dict{key: file})))
	assertOne(t, warnings, key, "not used by the authenticator authn-jwt")
}

func TestEmptyAnnotationLeavesTheEnvironment(t *testing.T) {
	annotations := group.with(nil)
	annotations["authn-identity"] = ""
	if cfg, _ := load(t, sources(t, annotations, connection)); cfg.Conjur.Login != "host/app" {
		t.Errorf("login %q", cfg.Conjur.Login)
	}
}

func TestConnectionRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		env       dict // changes to an API key's
		key, want string
	}{
		"no account":        {dict{"CONJUR_ACCOUNT": ""}, "CONJUR_ACCOUNT", "not set"},
		"no appliance":      {dict{"CONJUR_APPLIANCE_URL": ""}, "CONJUR_APPLIANCE_URL", "not set"},
		"no authenticator":  {dict{"CONJUR_AUTHN_API_KEY": ""}, "CONJUR_AUTHN_URL", "neither is CONJUR_AUTHN_API_KEY"},
		"no login":          {dict{"CONJUR_AUTHN_LOGIN": ""}, "conjur.org/authn-identity", "authn needs it"},
		"no API key":        {dict{"CONJUR_AUTHN_URL": "https://c/authn", "CONJUR_AUTHN_API_KEY": ""}, "CONJUR_AUTHN_API_KEY", "authn needs it"},
		"clear text":        {dict{"CONJUR_APPLIANCE_URL": "http://conjur.example.com"}, "CONJUR_APPLIANCE_URL", "clear text"},
		"no scheme":         {dict{"CONJUR_APPLIANCE_URL": "conjur.example.com"}, "CONJUR_APPLIANCE_URL", "https://"},
		"query":             {dict{"CONJUR_APPLIANCE_URL": "https://c?x=1"}, "CONJUR_APPLIANCE_URL", "query"},
		"password":          {dict{"CONJUR_APPLIANCE_URL": "https://u:p@c"}, "CONJUR_APPLIANCE_URL", "password"},
		"clear text, authn": {dict{"CONJUR_AUTHN_URL": "http://c/authn"}, "CONJUR_AUTHN_URL", "clear text"},
		"no authn segment":  {dict{"CONJUR_AUTHN_URL": "https://c/unsupported/abc"}, "CONJUR_AUTHN_URL", "no segment of the path"},
		"authn-oidc":        {dict{"CONJUR_AUTHN_URL": "https://c/authn-oidc/x", "CONJUR_AUTHN_API_KEY": ""}, "CONJUR_AUTHN_URL", `"authn-oidc" is not supported; use one of authn, authn-jwt, authn-k8s`},
		"authn-gcp with id": {dict{"CONJUR_AUTHN_URL": "https://c/authn-gcp/x", "CONJUR_AUTHN_API_KEY": ""}, "CONJUR_AUTHN_URL", "authn-gcp has no service id"},
		"k8s in clear text": {dict{"CONJUR_AUTHN_URL": "http://127.0.0.1/authn-k8s/x", "CONJUR_AUTHN_API_KEY": "", "MY_POD_NAME": "p", "MY_POD_NAMESPACE": "n", "CONJUR_CLIENT_CERT_PATH": "/tmp/x"}, "CONJUR_AUTHN_URL", "requires https://"},
		"no service id":     {dict{"CONJUR_AUTHN_URL": "https://c/authn-jwt/", "JWT_TOKEN_PATH": "/tmp/t"}, "CONJUR_AUTHN_URL", "service id is missing"},
		"no certificate":    {dict{"CONJUR_SSL_CERTIFICATE": "hello"}, "CONJUR_SSL_CERTIFICATE", "no PEM certificate"},
		"escaped PEM":       {dict{"CONJUR_SSL_CERTIFICATE": `-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n`}, "CONJUR_SSL_CERTIFICATE", `the text has \n as two letters instead of line breaks`},
		"broken PEM":        {dict{"CONJUR_SSL_CERTIFICATE": "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"}, "CONJUR_SSL_CERTIFICATE", "no PEM certificate"},
		"no such file":      {dict{"CONJUR_CERT_FILE": "/nowhere/ca.pem"}, "CONJUR_CERT_FILE", "/nowhere/ca.pem"},
		"no token":          {dict{"CONJUR_AUTHN_URL": "https://c/authn-jwt/x", "CONJUR_AUTHN_API_KEY": "", "JWT_TOKEN_PATH": "invalid//path"}, "JWT_TOKEN_PATH", "nor its folder"},
	} {
		t.Run(name, func(t *testing.T) {
			assertOne(t, problems(t, sources(t, group, connection.with(c.env))), c.key, c.want)
		})
	}
}

func TestLoopbackMayBePlain(t *testing.T) {
	for _, host := range []string{"localhost:8080", "127.0.0.1", "127.9.9.9:1", "[::1]:80"} {
		load(t, sources(t, group, connection.with(dict{"CONJUR_APPLIANCE_URL": "http://" + host})))
	}
	for _, host := range []string{"localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "[::2]"} {
		assertOne(t, problems(t, sources(t, group, connection.with(dict{"CONJUR_APPLIANCE_URL": "http://" + host}))), "CONJUR_APPLIANCE_URL", "clear text")
	}
}

func TestCertificates(t *testing.T) {
	text := certificate(t)
	cfg, _ := load(t, sources(t, group, connection.with(dict{"CONJUR_SSL_CERTIFICATE": "a comment\n" + text, "CONJUR_CERT_FILE": "/nowhere/ca.pem"})))
	if !strings.Contains(cfg.Conjur.SSLCertificate, text) {
		t.Error("the text is lost")
	}
	file := writeFile(t, "ca.pem", text)
	cfg, _ = load(t, sources(t, group, connection.with(dict{"CONJUR_CERT_FILE": file})))
	if cfg.Conjur.CertFile != file {
		t.Errorf("file %q", cfg.Conjur.CertFile)
	}
	expired, _ := keyPair(t, time.Date(2020, 5, 4, 3, 2, 1, 0, time.UTC))
	old, err := os.ReadFile(expired)
	if err != nil {
		t.Fatal(err)
	}
	bundle := writeFile(t, "bundle.pem", text+string(old))
	for env, what := range map[string]string{"CONJUR_SSL_CERTIFICATE": "the text", "CONJUR_CERT_FILE": bundle} {
		value := bundle
		if env == "CONJUR_SSL_CERTIFICATE" {
			value = text + string(old)
		}
		_, warnings := load(t, sources(t, group, connection.with(dict{env: value})))
		assertOne(t, warnings, env, what+` has expired certificates, which prove no server: "CN=root" on 2020-05-04; `)
	}
	if err := os.WriteFile(file, []byte("-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	assertOne(t, problems(t, sources(t, group, connection.with(dict{"CONJUR_CERT_FILE": file}))), "CONJUR_CERT_FILE", "contains no PEM certificate")
}

// TestMisplacedSecretsAreNotShown puts a secret where something else belongs.
func TestMisplacedSecretsAreNotShown(t *testing.T) {
	for _, c := range []struct{ variable, value string }{
		{"CONJUR_APPLIANCE_URL", "user:canary@conjur.example.com"},
		{"CONJUR_APPLIANCE_URL", "https:///user:canary@conjur.example.com"},
		{"CONJUR_APPLIANCE_URL", "ftp://user:canary@conjur.example.com"},
		{"CONJUR_APPLIANCE_URL", "http://conjur.example.com/#canary"},
		{"CONJUR_APPLIANCE_URL", "http://conjur.example.com/?token=canary"},
		{"CONJUR_APPLIANCE_URL", "https://conjur.example.com/%zcanary"},
		{"CONJUR_AUTHN_URL", "user:canary@conjur.example.com/authn-jwt/x"},
		{"CONJUR_AUTHN_API_KEY_FILE", "canary"},
		{"JWT_TOKEN_PATH", "eyJhbGciOiJub25lIn0.canary.canary"},
		{"CONJUR_SSL_CERTIFICATE", "canary"},
	} {
		env := connection.with(dict{"CONJUR_AUTHN_API_KEY": "", "CONJUR_AUTHN_URL": "https://c/authn-jwt/x", "JWT_TOKEN_PATH": writeFile(t, "token", "x")})
		if c.variable == "CONJUR_AUTHN_API_KEY_FILE" {
			env = connection.with(dict{"CONJUR_AUTHN_API_KEY": ""})
		}
		got := problems(t, sources(t, group, env.with(dict{c.variable: c.value})))
		assertOne(t, got, c.variable, "")
		for _, p := range got {
			if strings.Contains(p.Message, "canary") {
				t.Errorf("%s=%s: %s", c.variable, c.value, p.Message)
			}
		}
	}
}

// TestLongTextsAreCut wants messages that people can read, whatever they wrote.
func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, name := range []string{"container-mode", "secrets-destination", "retry-count-limit", "secrets-refresh-interval", "secrets-refresh-enabled",
		"log-level", "server-address", "removal-brake", "restart-app-signal", "restart-app-user", "secret-file-format.g", "secret-file-permissions.g",
		"secret-file-path.g", "conjur-secrets.g"} {
		for _, p := range problems(t, sources(t, group.with(dict{name: long + " "}), connection)) {
			if len(p.Message) > 1000 {
				t.Errorf("%s: a message of %d bytes: %.100s…", p.Key, len(p.Message), p.Message)
			}
		}
	}
}

func TestTimeoutOutOfRange(t *testing.T) {
	if cfg, _ := load(t, sources(t, group, connection.with(dict{"CONJUR_HTTP_TIMEOUT": "600"}))); cfg.Conjur.HTTPTimeout != 10*time.Minute {
		t.Errorf("600: got %v", cfg.Conjur.HTTPTimeout)
	}
	for _, text := range []string{"0", "-1", "601", "1m"} {
		cfg, warnings := load(t, sources(t, group, connection.with(dict{"CONJUR_HTTP_TIMEOUT": text})))
		if cfg.Conjur.HTTPTimeout != time.Minute {
			t.Errorf("%s: got %v", text, cfg.Conjur.HTTPTimeout)
		}
		assertOne(t, warnings, "CONJUR_HTTP_TIMEOUT", "using the default (60)")
	}
}

func TestAssumptions(t *testing.T) {
	src := sources(t, group, nil)
	src.Assume.Connection = true
	cfg, _ := load(t, src)
	if cfg.Conjur.AuthnType != "" || len(cfg.Targets) != 1 {
		t.Errorf("got %v", cfg)
	}
	src = sources(t, group, dict{"CONJUR_AUTHN_URL": "ftp://c"})
	src.Assume.Connection = true
	assertOne(t, problems(t, src), "CONJUR_AUTHN_URL", "https://")

	elsewhere := dict{"CONJUR_AUTHN_URL": "https://c/authn-jwt/x", "CONJUR_AUTHN_API_KEY": "", "JWT_TOKEN_PATH": "/nowhere/at/all", "CONJUR_CERT_FILE": "/nowhere/ca.pem"}
	src = sources(t, group, connection.with(elsewhere))
	if got := problems(t, src); len(got) != 2 {
		t.Errorf("missing files: %q", got)
	}
	src.Assume.Files = true
	load(t, src)
	src = sources(t, group, connection.with(dict{"CONJUR_AUTHN_API_KEY": "", "CONJUR_AUTHN_API_KEY_FILE": "/nowhere/key"}))
	src.Assume.Files = true
	load(t, src)
	src = sources(t, group, connection.with(dict{"CONJUR_ACCOUNT": ""}))
	src.Assume.Files = true
	assertOne(t, problems(t, src), "CONJUR_ACCOUNT", "not set")

	src = sources(t, job, connection)
	assertOne(t, problems(t, src), "MY_POD_NAMESPACE", "not set")
	src.Assume.Namespace = true
	load(t, src)
}

// A file that ends with a line break often becomes a variable. The break is no part of a
// login, a key, an address or a path.
func TestATrailingLineBreakIsRemoved(t *testing.T) {
	env := connection.with(dict{
		"CONJUR_APPLIANCE_URL": "https://conjur.example.com\n", "CONJUR_ACCOUNT": "acct\r\n", "CONJUR_AUTHN_LOGIN": "host/app\n",
		"CONJUR_AUTHN_API_KEY": "canary\n\n", "CONJUR_HTTP_TIMEOUT": "7\n",
	})
	cfg, warnings := load(t, sources(t, group, env))
	c := cfg.Conjur
	if c.ApplianceURL != "https://conjur.example.com" || c.Account != "acct" || c.Login != "host/app" || string(c.APIKey.Bytes()) != "canary" || c.HTTPTimeout != 7*time.Second {
		t.Errorf("got %q %q %q, a key of %d bytes, %v", c.ApplianceURL, c.Account, c.Login, c.APIKey.Len(), c.HTTPTimeout)
	}
	if len(warnings) != 5 {
		t.Errorf("warnings %q, want one for each of 5 variables", warnings)
	}
	for _, w := range warnings {
		if !strings.Contains(w.Message, "ends with a line break") || strings.Contains(w.Message, "canary") {
			t.Errorf("%s: %s", w.Key, w.Message)
		}
	}
	cfg, warnings = load(t, sources(t, group.with(dict{"authn-identity": "host/x\n"}), connection))
	assertOne(t, warnings, "conjur.org/authn-identity", "ends with a line break")
	if cfg.Conjur.Login != "host/x" {
		t.Errorf("login %q", cfg.Conjur.Login)
	}
	cfg, _ = load(t, fileSources(t, "conjur: {account: \"acct\\n\"}", group, connection.with(dict{"CONJUR_ACCOUNT": ""})))
	if cfg.Conjur.Account != "acct" {
		t.Errorf("account %q", cfg.Conjur.Account)
	}
	inside := dict{"CONJUR_AUTHN_LOGIN": "host/\napp", "CONJUR_AUTHN_API_KEY": "can\nary", "CONJUR_ACCOUNT": "ac\tct"}
	for name, value := range inside {
		got := problems(t, sources(t, group, connection.with(dict{name: value})))
		assertOne(t, got, name, "control character")
		if strings.Contains(got[0].Message, "ary") {
			t.Errorf("%s", got[0].Message)
		}
	}
	assertOne(t, problems(t, sources(t, group, connection.with(dict{"CONJUR_ACCOUNT": "\n"}))), "CONJUR_ACCOUNT", "not set")
}

// A proxy that net/http would ignore is a connection past the proxy.
func TestAProxyIsNeverIgnored(t *testing.T) {
	for name, values := range map[string][]string{
		"HTTPS_PROXY": {
			"http://proxy:port", "http://pro xy:3128", "://proxy", "http:/proxy:3128", "https//proxy", "ftp://proxy:21", "http://", "http://proxy:99999", ":3128", "http://[::1", "canary\x7f", "proxy:3128 ", "http://proxy:3128\n",
		},
		"http_proxy": {"http://%zz"},
		"NO_PROXY":   {"https://conjur.example.com", "conjur.example.com/api", "10.0.0.0/99", "a b", "a;b", "[::1", "a:b:c"},
		"no_proxy":   {"a,b c"},
	} {
		for _, value := range values {
			got := problems(t, sources(t, group, connection.with(dict{name: value})))
			if assertOne(t, got, name, ""); len(got) == 1 && strings.Contains(got[0].Message, "canary") {
				t.Errorf("%s=%q: %s", name, value, got[0].Message)
			}
		}
	}
	for name, values := range map[string][]string{
		"HTTPS_PROXY": {"http://proxy:3128", "https://proxy.example.com", "proxy", "proxy:3128", "socks5://proxy:1080", "socks5h://proxy:1080", "http://[::1]:3128/", "10.0.0.1:80"},
		"NO_PROXY":    {"*", "conjur.example.com", ".svc,.cluster.local", "*.example.com, 10.0.0.0/8", "10.0.0.1:443", "[::1]:80", "::1", "fd00::/8", "localhost:8443,"},
	} {
		for _, value := range values {
			if got := problems(t, sources(t, group, connection.with(dict{name: value}))); got != nil {
				t.Errorf("%s=%q: %q", name, value, got)
			}
		}
	}
	_, warnings := load(t, sources(t, group, connection.with(dict{"ALL_PROXY": "http://proxy:3128"})))
	assertOne(t, warnings, "ALL_PROXY", "not used; set HTTPS_PROXY")
}
