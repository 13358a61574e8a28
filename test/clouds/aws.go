package clouds

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AWS is IAM and STS with one user.
type AWS struct {
	Cloud
	User  string
	Admin Key // signs requests to IAM
	// Session, if set, is the token that the administrator's requests must carry. Others
	// have expired.
	Session atomic.Pointer[string]
}

// NewAWS starts one. before puts faults before it; nil puts none.
func NewAWS(t testing.TB, user string, before func(http.Handler) http.Handler) *AWS {
	a := &AWS{User: user, Admin: Key{ID: "AKIAADMIN", Secret: rand.Text()}}
	a.Limit = 2
	a.start(t, a.serve, before)
	return a
}

// AdminJSON is the value of the administrator's variable.
func (a *AWS) AdminJSON() string {
	return fmt.Sprintf(`{"accessKeyId":%q,"secretAccessKey":%q}`, a.Admin.ID, a.Admin.Secret)
}

func (a *AWS) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	values, _ := url.ParseQuery(string(body))
	call := values.Get("Action")
	switch id, code := a.signer(r, body); {
	case a.throttled(w):
		fail(w, http.StatusBadRequest, "Throttling")
	case call == "GetCallerIdentity" && code == "":
		answer(w, call, fmt.Sprintf("<Arn>arn:aws:iam::123456789012:user/apps/%s</Arn><UserId>AIDA</UserId><Account>123456789012</Account>", a.User))
	case code != "":
		fail(w, http.StatusForbidden, code)
	case id != a.Admin.ID || a.denies(call):
		fail(w, http.StatusForbidden, "AccessDenied")
	case call != "GetAccessKeyLastUsed" && values.Get("UserName") != a.User:
		fail(w, http.StatusNotFound, "NoSuchEntity")
	default:
		a.act(w, call, values)
	}
}

func (a *AWS) act(w http.ResponseWriter, call string, values url.Values) {
	id := values.Get("AccessKeyId")
	switch call {
	case "ListAccessKeys":
		var list strings.Builder
		for _, k := range a.seen() {
			fmt.Fprintf(&list, "<member>%s</member>", a.described(k))
		}
		answer(w, call, "<AccessKeyMetadata>"+list.String()+"</AccessKeyMetadata><IsTruncated>false</IsTruncated>")
	case "CreateAccessKey":
		key := &Key{ID: "AKIA" + rand.Text()[:16], Secret: rand.Text() + "+/="}
		if !a.add(key) {
			fail(w, http.StatusConflict, "LimitExceeded")
			return
		}
		answer(w, call, "<AccessKey>"+a.described(*key)+"<SecretAccessKey>"+key.Secret+"</SecretAccessKey></AccessKey>")
	case "UpdateAccessKey":
		a.done(w, call, a.Change(id, values.Get("Status") == "Active"))
	case "DeleteAccessKey":
		a.done(w, call, a.Remove(id))
	case "GetAccessKeyLastUsed":
		keys, used := a.Keys(), ""
		i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
		if i < 0 { // the reference names no other error
			fail(w, http.StatusForbidden, "AccessDenied")
			return
		}
		if !keys[i].Used.IsZero() {
			used = "<LastUsedDate>" + keys[i].Used.UTC().Format(time.RFC3339) + "</LastUsedDate>"
		}
		answer(w, call, "<UserName>"+a.User+"</UserName><AccessKeyLastUsed>"+used+"<ServiceName>s3</ServiceName><Region>eu-west-1</Region></AccessKeyLastUsed>")
	default:
		fail(w, http.StatusBadRequest, "InvalidAction")
	}
}

func (a *AWS) described(k Key) string {
	status := map[bool]string{true: "Active", false: "Inactive"}[k.Active]
	return fmt.Sprintf("<UserName>%s</UserName><AccessKeyId>%s</AccessKeyId><Status>%s</Status><CreateDate>%s</CreateDate>", a.User, k.ID, status, k.Created.UTC().Format(time.RFC3339))
}

func (a *AWS) done(w http.ResponseWriter, call string, found bool) {
	if !found {
		fail(w, http.StatusNotFound, "NoSuchEntity")
		return
	}
	answer(w, call, "")
}

func answer(w http.ResponseWriter, call, result string) {
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>`, call, result)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>%s</Code><Message>the message quotes the canonical request</Message></Error></ErrorResponse>`, code)
}

// signer returns the key that signed a request, and the code of what is wrong with it.
func (a *AWS) signer(r *http.Request, body []byte) (id, code string) {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	scope := strings.Split(strings.SplitN(credential, ",", 2)[0], "/")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if len(scope) != 5 || err != nil {
		return "", "IncompleteSignature"
	}
	if id = scope[0]; a.Now().Sub(at).Abs() > 5*time.Minute {
		return id, "SignatureDoesNotMatch"
	}
	if id == a.Admin.ID {
		token := r.Header.Get("X-Amz-Security-Token")
		if must := a.Session.Load(); must != nil && *must != token {
			return id, "ExpiredToken"
		}
		if !signedBy(r, body, a.Admin, token, scope, at) {
			return id, "SignatureDoesNotMatch"
		}
		return id, ""
	}
	wrong := false
	if !a.use(id, func(k Key) bool { wrong = !signedBy(r, body, k, "", scope, at); return !wrong }) {
		if wrong {
			return id, "SignatureDoesNotMatch"
		}
		return id, "InvalidClientTokenId"
	}
	return id, ""
}

// signedBy reports whether a key signed a request.
func signedBy(r *http.Request, body []byte, k Key, token string, scope []string, at time.Time) bool {
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.String(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	again.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	hash := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: token}
	err = v4.NewSigner().SignHTTP(context.Background(), keys, again, hex.EncodeToString(hash[:]), scope[3], scope[2], at)
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

// SignIn signs a request to STS with a key, as an application does. The error says that
// the key was not accepted.
func (a *AWS) SignIn(id, secretKey string) error {
	body := []byte("Action=GetCallerIdentity&Version=2011-06-15")
	req, err := http.NewRequest(http.MethodPost, a.URL+"/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: id, SecretAccessKey: secretKey}, req, hex.EncodeToString(hash[:]), "sts", "us-east-1", a.Now()); err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %s", id, res.StatusCode, said)
	}
	return nil
}
