package cloudtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Proofs of identity that AWS requires before it issues keys.
const (
	WebIdentity = "web.identity.token" // the token of IRSA
	PodIdentity = "pod.identity.token" // the token of Pod Identity
	RoleARN     = "arn:aws:iam::" + AWSAccount + ":role/" + AWSRole
	AWSAccount  = "123456789012"
	AWSRole     = "web"
)

// The access keys of AWSRole, by their source.
const (
	StaticKey   = "AKIASTATIC"
	WebKey      = "ASIAWEB"
	PodKey      = "ASIAPOD"
	InstanceKey = "ASIAIMDS"
)

// awsSkew is the permitted clock difference of a signature.
const awsSkew = 5 * time.Minute

// AWS simulates the account AWSAccount with the role AWSRole.
type AWS struct {
	// STS is the Security Token Service of all regions.
	STS *Service
	// Metadata is the instance's service (IMDSv2). At /pod it is the service of Pod
	// Identity.
	Metadata *Service
	// Secret is the secret of all access keys, and part of session tokens.
	Secret string
	// ARNs maps further access keys to their ARNs. Other keys are unknown.
	ARNs map[string]string
	// Life is the lifetime of issued keys. 0 means an hour.
	Life time.Duration

	now func() time.Time
}

// NewAWS starts the services. now is their clock.
func NewAWS(t testing.TB, now func() time.Time) *AWS {
	a := &AWS{now: now, Secret: "secret-" + rand.Text(), ARNs: map[string]string{}}
	for _, key := range []string{StaticKey, WebKey, PodKey, InstanceKey} {
		a.ARNs[key] = "arn:aws:sts::" + AWSAccount + ":assumed-role/" + AWSRole + "/i-0123"
	}
	a.STS = NewService(t, a.sts)
	a.Metadata = NewService(t, a.metadata)
	return a
}

func (a *AWS) session() string { return "session-" + a.Secret }

// expiry returns the expiry of keys that are issued now.
func (a *AWS) expiry() string {
	life := a.Life
	if life == 0 {
		life = time.Hour
	}
	return a.now().Add(life).UTC().Format(time.RFC3339)
}

func (a *AWS) metadata(w http.ResponseWriter, r *http.Request) {
	keys := func(id string) {
		fmt.Fprintf(w, `{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":%q}`, id, a.Secret, a.session(), a.expiry())
	}
	path := r.URL.Path
	switch {
	case path == "/pod" && r.Header.Get("Authorization") == PodIdentity:
		keys(PodKey)
	case r.Method == http.MethodPut && path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		_, _ = io.WriteString(w, "imds")
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds":
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasSuffix(path, "/security-credentials/"):
		_, _ = io.WriteString(w, AWSRole)
	case strings.HasSuffix(path, "/security-credentials/"+AWSRole):
		keys(InstanceKey)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *AWS) sts(w http.ResponseWriter, r *http.Request) {
	const namespace = `xmlns="https://sts.amazonaws.com/doc/2011-06-15/"`
	switch r.FormValue("Action") {
	case "AssumeRoleWithWebIdentity":
		if r.FormValue("WebIdentityToken") != WebIdentity || r.FormValue("RoleArn") != RoleARN {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse %s><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId>`+
			`<SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>`+
			`</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, namespace, WebKey, a.Secret, a.session(), a.expiry())
	case "GetCallerIdentity":
		arn := a.caller(r)
		if arn == "" || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `<GetCallerIdentityResponse %s><GetCallerIdentityResult><Arn>%s</Arn><UserId>A:i</UserId><Account>%s</Account>`+
			`</GetCallerIdentityResult></GetCallerIdentityResponse>`, namespace, arn, AWSAccount)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=(\w+)/\d{8}/([\w-]+)/sts/aws4_request, SignedHeaders=([\w;-]+), Signature=\w+$`)

// caller returns the ARN of the request's signer. It returns "" if the signature is
// invalid, for another region, or not current.
func (a *AWS) caller(r *http.Request) string {
	found := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if found == nil || err != nil || a.now().Sub(at).Abs() > awsSkew || r.Host != stsHost(found[2]) && r.Host != "sts.amazonaws.com" {
		return ""
	}
	again, err := http.NewRequest(r.Method, "https://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return ""
	}
	for name := range strings.SplitSeq(found[3], ";") {
		if name != "host" {
			again.Header.Set(name, r.Header.Get(name))
		}
	}
	session := r.Header.Get("X-Amz-Security-Token")
	a.sign(again, found[1], session, found[2], at)
	if again.Header.Get("Authorization") != r.Header.Get("Authorization") || session != a.session() && strings.HasPrefix(found[1], "ASIA") {
		return ""
	}
	return a.ARNs[found[1]]
}

// Sign returns the JSON that a client of authn-iam sends: the header fields of an STS
// request in the region. It signs them now, with the access key. more adds fields,
// as alternating names and values.
func (a *AWS) Sign(key, region string, more ...string) string {
	req, err := http.NewRequest(http.MethodGet, "https://"+stsHost(region)+"/?Action=GetCallerIdentity&Version=2011-06-15", nil)
	if err != nil {
		return ""
	}
	for i := 0; i < len(more); i += 2 {
		req.Header.Set(more[i], more[i+1])
		if more[i] == "Host" {
			req.Header.Del("Host")
			req.Host = more[i+1]
		}
	}
	a.sign(req, key, a.session(), region, a.now())
	fields := map[string]string{"Host": req.Host}
	for name := range req.Header {
		fields[name] = req.Header.Get(name)
	}
	text, _ := json.Marshal(fields) // texts always encode
	return string(text)
}

func (a *AWS) sign(req *http.Request, key, session, region string, at time.Time) {
	const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	_ = v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: key, SecretAccessKey: a.Secret, SessionToken: session},
		req, emptyBody, "sts", region, at.UTC())
}

func stsHost(region string) string { return "sts." + region + ".amazonaws.com" }
