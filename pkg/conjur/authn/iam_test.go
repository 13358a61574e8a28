package authn_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
)

// bareAWS takes away what the machine that tests may have of AWS.
func bareAWS(t *testing.T, env map[string]string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
	dir := t.TempDir()
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	for name, value := range env {
		t.Setenv(name, value)
	}
}

func TestIAM(t *testing.T) {
	aws := cloudtest.NewAWS(t, time.Now)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		env               map[string]string
		key, region, host string
		session           bool
	}{
		"static keys": {map[string]string{"AWS_ACCESS_KEY_ID": "AKIASTATIC", "AWS_SECRET_ACCESS_KEY": canary, "AWS_REGION": "eu-central-1"},
			"AKIASTATIC", "eu-central-1", "sts.eu-central-1.amazonaws.com", false},
		"no region": {map[string]string{"AWS_ACCESS_KEY_ID": "AKIASTATIC", "AWS_SECRET_ACCESS_KEY": canary, "AWS_SESSION_TOKEN": "session-" + canary},
			"AKIASTATIC", "us-east-1", "sts.us-east-1.amazonaws.com", true},
		"the global endpoint": {map[string]string{"AWS_ACCESS_KEY_ID": "AKIASTATIC", "AWS_SECRET_ACCESS_KEY": canary, "AWS_REGION": "global"},
			"AKIASTATIC", "us-east-1", "sts.amazonaws.com", false},
		"IRSA": {map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": file(cloudtest.WebIdentity), "AWS_ROLE_ARN": cloudtest.RoleARN,
			"AWS_ENDPOINT_URL_STS": aws.STS.URL, "AWS_REGION": "us-gov-west-1"}, cloudtest.WebKey, "us-gov-west-1", "sts.us-gov-west-1.amazonaws.com", true},
		"Pod Identity": {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": aws.Metadata.URL + "/pod", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file(cloudtest.PodIdentity),
			"AWS_REGION": "eu-west-1"}, cloudtest.PodKey, "eu-west-1", "sts.eu-west-1.amazonaws.com", true},
		"IMDSv2": {map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.Metadata.URL, "AWS_REGION": "eu-west-1"},
			cloudtest.InstanceKey, "eu-west-1", "sts.eu-west-1.amazonaws.com", true},
	} {
		t.Run(name, func(t *testing.T) {
			bareAWS(t, c.env)
			f := newFake(t)
			wantFound(t, f.client(&authn.IAM{URL: "https://conjur.test/authn-iam/prod", Login: "apps/1/web"}))
			got := f.log()
			if len(got) != 1 || got[0].path != "/authn-iam/prod/dev/host%2Fapps%2F1%2Fweb/authenticate" || got[0].contentType != "application/json" {
				t.Fatalf("asked %+v", got)
			}
			var headers map[string]string
			if err := json.Unmarshal([]byte(got[0].body), &headers); err != nil {
				t.Fatal(err)
			}
			signed := "SignedHeaders=host;x-amz-date"
			if c.session {
				signed += ";x-amz-security-token"
			}
			scope := c.key + "/" + time.Now().UTC().Format("20060102") + "/" + c.region + "/sts/aws4_request"
			auth := headers["Authorization"]
			if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=") || !strings.Contains(auth, scope) || !strings.Contains(auth, signed+",") {
				t.Errorf("signed %q, want %s and %s", auth, scope, signed)
			}
			if headers["Host"] != c.host || headers["X-Amz-Date"] == "" || (headers["X-Amz-Security-Token"] != "") != c.session {
				t.Errorf("headers %v", headers)
			}
			if strings.Contains(auth, canary) || strings.Contains(auth, aws.Secret) {
				t.Error("the secret key is sent")
			}
		})
	}
}

// TestIAMTrustsTheBundle that AWS_CA_BUNDLE or the configuration file names. The
// error of one that cannot be used names it.
func TestIAMTrustsTheBundle(t *testing.T) {
	aws := cloudtest.NewAWS(t, time.Now)
	sts := httptest.NewTLSServer(aws.STS.Usual)
	t.Cleanup(sts.Close)
	sts.Config.ErrorLog = log.New(io.Discard, "", 0) // it names clients that do not trust it
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bundle := file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sts.Certificate().Raw})))
	other := file("other.pem", string(newAuthority(t).pem()))
	web := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": file("token", cloudtest.WebIdentity), "AWS_ROLE_ARN": cloudtest.RoleARN,
		"AWS_ENDPOINT_URL_STS": sts.URL, "AWS_REGION": "eu-west-1"}
	for name, c := range map[string]struct{ variable, path, want string }{
		"in the variable":        {"AWS_CA_BUNDLE", bundle, ""},
		"in the file":            {"AWS_CONFIG_FILE", file("config", "[default]\nca_bundle = "+bundle+"\n"), ""},
		"none":                   {"AWS_REGION", "eu-west-1", "is signed by an authority that is not known; name its file in AWS_CA_BUNDLE"},
		"another authority":      {"AWS_CA_BUNDLE", other, "is signed by an authority that is not known; name its file in AWS_CA_BUNDLE"},
		"no file":                {"AWS_CA_BUNDLE", filepath.Join(dir, "nowhere"), "AWS_CA_BUNDLE: open " + filepath.Join(dir, "nowhere")},
		"no certificate":         {"AWS_CA_BUNDLE", file("empty.pem", canary), "AWS_CA_BUNDLE: " + filepath.Join(dir, "empty.pem") + " contains no PEM certificate"},
		"no valid configuration": {"AWS_MAX_ATTEMPTS", "many", "the variables AWS_… or AWS's configuration files are not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			bareAWS(t, web)
			t.Setenv(c.variable, c.path)
			f := newFake(t)
			client := f.client(&authn.IAM{URL: "https://conjur.test/authn-iam/prod", Login: "web"})
			if c.want == "" {
				wantFound(t, client)
			} else {
				wantUnknown(t, client, c.want)
			}
		})
	}
}

// What AWS lacks is named, and Conjur is not asked.
func TestIAMRefuses(t *testing.T) {
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AKIASTATIC", "AWS_SECRET_ACCESS_KEY": canary}
	silent := cloudtest.NewService(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	page := cloudtest.NewService(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>"+canary+"</html>") })
	long := cloudtest.NewService(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"AccessKeyId":"AKIALONG","SecretAccessKey":"%s","Token":"%s"}`, canary, strings.Repeat("A", 1<<20))
	})
	none := cloudtest.NewService(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"Token":"`+canary+`"}`) })
	away := cloudtest.NewService(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"a region apart":   {map[string]string{"AWS_REGION": "us-iso-east-1"}, `the region "us-iso-east-1" is not one that Conjur accepts`},
		"a region's trick": {map[string]string{"AWS_REGION": "evil.example/?"}, "is not one that Conjur accepts"},
		"China":            {map[string]string{"AWS_REGION": "cn-north-1"}, "below amazonaws.com"},
		"no keys":          {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "AWS's credentials: "},
		"an empty token": {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ROLE_ARN": "arn:aws:iam::1:role/x"},
			"AWS's credentials: "},
		"a page":        {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": page.URL}, "AWS's credentials: "},
		"a long answer": {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": long.URL}, "AWS's credentials: "},
		"no key in it":  {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": none.URL}, "AWS's credentials: the credentials that were found lack a key"},
		"a page for metadata": {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": page.URL},
			"AWS's credentials: "},
		"an instance without a role": {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": away.URL},
			strings.TrimPrefix(away.URL, "http://") + " answered 503"},
		"a Pod without an identity": {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": away.URL},
			strings.TrimPrefix(away.URL, "http://") + " answered 503"},
		"a profile that is not there": {map[string]string{"AWS_PROFILE": "nosuch"}, "nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			bareAWS(t, keys)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			f := newFake(t)
			wantUnknown(t, f.client(&authn.IAM{URL: "https://conjur.test/authn-iam/prod", Login: "web"}), c.want)
			if got := f.log(); len(got) != 0 {
				t.Errorf("Conjur was asked: %+v", got)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		bareAWS(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": silent.URL})
		f := newFake(t)
		wantUnknown(t, f.client(&authn.IAM{URL: "https://conjur.test/authn-iam/prod", Login: "web"}), "none found within 15s")
	})
}

// Refused keys are found anew, once; those that were found just now are not.
func TestIAMRefused(t *testing.T) {
	bareAWS(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKIAFIRST", "AWS_SECRET_ACCESS_KEY": canary})
	f := newFake(t)
	client := f.client(&authn.IAM{URL: "https://conjur.test/authn-iam/prod", Login: "web"})
	wantFound(t, client)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIASECOND")
	f.set(func(f *fake) {
		f.admit = func(r request) int {
			if strings.Contains(r.body, "AKIASECOND") {
				return http.StatusOK
			}
			return http.StatusUnauthorized
		}
	})
	f.log()
	wantFound(t, client)
	if got := f.log(); len(got) != 2 {
		t.Errorf("asked %s", paths(got))
	}
	f.set(func(f *fake) { f.admit = func(request) int { return http.StatusUnauthorized } })
	wantUnknown(t, client, "answered 401")
	if got := f.log(); len(got) != 2 {
		t.Errorf("asked %s", paths(got))
	}
}
