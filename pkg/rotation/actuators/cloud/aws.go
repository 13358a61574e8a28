package cloud

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Parts of a version for AWS.
const (
	accessKeyID     = "accessKeyId"
	secretAccessKey = "secretAccessKey"
	credentialsFile = "credentials"
)

// AWS are the access keys of an IAM user.
type AWS struct {
	User string
	// Admin returns the key that signs requests to IAM, as JSON with accessKeyId,
	// secretAccessKey and sessionToken. nil: as other AWS programs find it.
	Admin    func(context.Context) (secret.Value, error)
	Region   string // empty: us-east-1
	Endpoint string // replaces the URLs of IAM and STS; empty: those of the region
	// Credentials adds a part that is a credentials file.
	Credentials bool
	Client      *http.Client // nil: the default
}

// NewAWS returns the Actuator for the access keys of an IAM user.
func NewAWS(config Config, a AWS) *Keys {
	a.Region = cmp.Or(a.Region, "us-east-1")
	return newKeys(config, 30*time.Second, &iam{AWS: a, iam: newCaller("AWS IAM", a.Client, awsCode), sts: newCaller("AWS STS", a.Client, awsCode)})
}

// iam is the provider of access keys.
type iam struct {
	AWS
	iam, sts *caller
	found    authn.AWSKeys
}

func (i *iam) holder() string { return "the IAM user " + i.User }

func (i *iam) limit() int { return 2 }

func (i *iam) marks() bool { return false }

// keyXML is an access key in an answer of IAM.
type keyXML struct {
	ID      string    `xml:"AccessKeyId"`
	Secret  []byte    `xml:"SecretAccessKey"`
	Status  string    `xml:"Status"`
	Created time.Time `xml:"CreateDate"`
}

func (i *iam) listKeys(ctx context.Context) (keys []key, at time.Time, err error) {
	var answer struct {
		Keys []keyXML `xml:"ListAccessKeysResult>AccessKeyMetadata>member"`
	}
	err = i.call(ctx, "ListAccessKeys", url.Values{}, &answer)
	for _, found := range answer.Keys {
		keys = append(keys, key{id: found.ID, created: found.Created, active: found.Status == "Active"})
	}
	return keys, i.iam.now(), err
}

func (i *iam) create(ctx context.Context, _ versions.Version) (string, map[string]secret.Value, error) {
	var answer struct {
		Key keyXML `xml:"CreateAccessKeyResult>AccessKey"`
	}
	if err := i.call(ctx, "CreateAccessKey", url.Values{}, &answer); err != nil {
		return "", nil, err
	}
	if answer.Key.ID == "" || len(answer.Key.Secret) == 0 {
		return "", nil, errors.New("the answer of AWS IAM to CreateAccessKey contains no key; Syncer tries again")
	}
	parts := map[string]secret.Value{accessKeyID: secret.New([]byte(answer.Key.ID)), secretAccessKey: secret.New(answer.Key.Secret)}
	if i.Credentials {
		parts[credentialsFile] = credentialsOf(parts)
	}
	return answer.Key.ID, parts, nil
}

// credentialsOf returns the credentials file of a key.
func credentialsOf(parts map[string]secret.Value) secret.Value {
	return secret.New(fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", parts[accessKeyID].Bytes(), parts[secretAccessKey].Bytes()))
}

func (i *iam) complete(v versions.Version) map[string]secret.Value {
	lacks := map[string]secret.Value{}
	if i.Credentials && v.State == versions.Pending && v.Parts[credentialsFile].Len() == 0 {
		lacks[credentialsFile] = credentialsOf(v.Parts)
	}
	return lacks
}

func (i *iam) disable(ctx context.Context, id string) (bool, error) {
	return true, i.call(ctx, "UpdateAccessKey", url.Values{"AccessKeyId": {id}, "Status": {"Inactive"}}, nil)
}

func (i *iam) remove(ctx context.Context, id string) error {
	return i.call(ctx, "DeleteAccessKey", url.Values{"AccessKeyId": {id}}, nil)
}

func (i *iam) keyOf(v versions.Version) string { return string(v.Parts[accessKeyID].Bytes()) }

func (i *iam) lastUsed(ctx context.Context, id string) (time.Time, string, error) {
	var answer struct {
		User string `xml:"GetAccessKeyLastUsedResult>UserName"`
		Used struct {
			At      string `xml:"LastUsedDate"`
			Service string `xml:"ServiceName"`
			Region  string `xml:"Region"`
		} `xml:"GetAccessKeyLastUsedResult>AccessKeyLastUsed"`
	}
	err := i.call(ctx, "GetAccessKeyLastUsed", url.Values{"AccessKeyId": {id}}, &answer)
	if err == nil && (answer.Used.At == "" || answer.Used.At == "N/A") {
		return time.Time{}, "", nil
	}
	at, bad := time.Parse(time.RFC3339, answer.Used.At)
	if err == nil && bad != nil {
		err = errors.New("the answer of AWS IAM to GetAccessKeyLastUsed contains no time; Syncer tries again")
	}
	return at.Add(-i.iam.skew), fmt.Sprintf("for %s in %s", plain(answer.Used.Service), plain(answer.Used.Region)), err
}

// verify asks who the key belongs to. This call needs no permission.
func (i *iam) verify(ctx context.Context, v versions.Version) error {
	keys := aws.Credentials{AccessKeyID: string(v.Parts[accessKeyID].Bytes()), SecretAccessKey: string(v.Parts[secretAccessKey].Bytes())}
	var answer struct {
		ARN string `xml:"GetCallerIdentityResult>Arn"`
	}
	err := i.signed(ctx, i.sts, "sts", "GetCallerIdentity", "2011-06-15", url.Values{}, &answer, func(context.Context) (aws.Credentials, error) { return keys, nil })
	if f, ok := errors.AsType[*fault](err); ok && f.invalid() {
		return fmt.Errorf("%w: AWS does not accept the access key %s (%s): it was deactivated or deleted, or its secret is wrong", actuators.ErrRefused, keys.AccessKeyID, f.code)
	}
	if err != nil {
		return err
	}
	if name := answer.ARN[strings.LastIndex(answer.ARN, "/")+1:]; !strings.Contains(answer.ARN, ":user/") || name != i.User {
		return &strangerError{key: keys.AccessKeyID, owner: strings.TrimSpace("the user " + plain(name)), holder: i.holder()}
	}
	return nil
}

// call sends a call about the user to IAM. If the credentials of this process expired, it
// gets new ones once.
func (i *iam) call(ctx context.Context, call string, values url.Values, into any) error {
	if call != "GetAccessKeyLastUsed" { // it finds the user by the key
		values.Set("UserName", i.User)
	}
	err := i.signed(ctx, i.iam, "iam", call, "2010-05-08", values, into, i.own)
	if f, ok := errors.AsType[*fault](err); ok && i.Admin == nil && (f.expired() || f.invalid()) {
		i.found.Forget()
		err = i.signed(ctx, i.iam, "iam", call, "2010-05-08", values, into, i.own)
	}
	return err
}

// own returns the credentials of this process.
func (i *iam) own(ctx context.Context) (aws.Credentials, error) {
	if i.Admin == nil {
		keys, err := i.found.Retrieve(ctx)
		if err != nil {
			return keys, fmt.Errorf("AWS's credentials of Syncer: %w", err)
		}
		return keys, nil
	}
	value, err := i.Admin(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	defer value.Wipe()
	var keys struct{ AccessKeyID, SecretAccessKey, SessionToken string }
	if json.Unmarshal(value.Bytes(), &keys) != nil || keys.AccessKeyID == "" || keys.SecretAccessKey == "" {
		return aws.Credentials{}, errors.New(`the variable that aws.admin names is not {"accessKeyId":…,"secretAccessKey":…}; set it so`)
	}
	return aws.Credentials{AccessKeyID: keys.AccessKeyID, SecretAccessKey: keys.SecretAccessKey, SessionToken: keys.SessionToken}, nil
}

// signed sends a signed call. It repeats the call once if the clock of this process is
// wrong: it then signs with the service's time.
func (i *iam) signed(ctx context.Context, c *caller, service, call, version string, values url.Values, into any, own func(context.Context) (aws.Credentials, error)) error {
	keys, err := own(ctx)
	if err != nil {
		return err
	}
	values.Set("Action", call)
	values.Set("Version", version)
	to, region := i.endpoint(service)
	for again := true; ; again = false {
		req, err := form(to, values)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return err
		}
		req.Body, _ = req.GetBody()
		hash := sha256.Sum256(body)
		if v4.NewSigner().SignHTTP(ctx, keys, req, hex.EncodeToString(hash[:]), service, region, c.now().UTC()) != nil {
			return errors.New("the request to AWS cannot be signed")
		}
		skew := c.skew
		answer, err := c.do(ctx, call, req)
		f, failed := errors.AsType[*fault](err)
		if again && failed && f.skewed() && (c.skew-skew).Abs() > time.Minute {
			continue
		}
		defer clear(answer)
		if err != nil {
			return err
		}
		var root struct{ XMLName xml.Name }
		if xml.Unmarshal(answer, &root) != nil || root.XMLName.Local != call+"Response" || into != nil && xml.Unmarshal(answer, into) != nil {
			return fmt.Errorf("the answer of %s to %s is not in its documented form; Syncer tries again", c.service, call)
		}
		return nil
	}
}

// endpoint returns the URL of a service, and the region for the signature. IAM has one
// endpoint for each partition.
func (i *iam) endpoint(service string) (to, region string) {
	host, region := "sts."+i.Region+".amazonaws.com", i.Region
	china := strings.HasPrefix(i.Region, "cn-")
	switch {
	case service == "iam" && china:
		host, region = "iam.cn-north-1.amazonaws.com", "cn-north-1"
	case service == "iam" && strings.HasPrefix(i.Region, "us-gov-"):
		host, region = "iam.us-gov.amazonaws.com", "us-gov-west-1"
	case service == "iam":
		host, region = "iam.amazonaws.com", "us-east-1"
	}
	if china {
		host += ".cn"
	}
	if i.Endpoint != "" {
		return strings.TrimRight(i.Endpoint, "/") + "/", region
	}
	return "https://" + host + "/", region
}

// awsCode returns the code of an error of IAM or STS.
func awsCode(answer []byte) string {
	var said struct {
		Code string `xml:"Error>Code"`
	}
	_ = xml.Unmarshal(answer, &said)
	return said.Code
}
