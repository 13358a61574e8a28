package authn

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	// awsTimeout bounds the search for AWS credentials.
	awsTimeout = 15 * time.Second
	// defaultRegion is the region of the request if AWS's configuration names none.
	defaultRegion = "us-east-1"
	// global selects the endpoint that belongs to no region.
	global = "global"
	// emptyBody is the SHA-256 of the signed request's body.
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// regions matches the regions that Conjur accepts. Their AWS partitions use the
// domain amazonaws.com.
var regions = regexp.MustCompile(`^([a-z]{2}(-gov)?-[a-z]+-\d|` + global + `)$`)

// IAM authenticates by a signed request to AWS's Security Token Service. The client
// does not send that request. Conjur sends it and learns the identity of the
// signer. IAM finds key and region as other AWS programs do.
type IAM struct {
	URL   string // as in https://host/authn-iam/service
	Login string // of a host, with or without "host/"

	keys AWSKeys
}

// Credential implements conjur.Authenticator.
func (a *IAM) Credential(ctx context.Context, _ conjur.Send) (conjur.Credential, error) {
	limited, cancel := context.WithTimeout(ctx, awsTimeout)
	defer cancel()
	kept := a.keys.config != nil
	body, err := a.sign(limited)
	switch {
	case ctx.Err() != nil:
		return conjur.Credential{}, fmt.Errorf("AWS's credentials: none found yet: %w", ctx.Err())
	case limited.Err() != nil:
		return conjur.Credential{}, fmt.Errorf("AWS's credentials: none found within %v", awsTimeout)
	case err != nil:
		a.keys.Forget()
		return conjur.Credential{}, fmt.Errorf("AWS's credentials: %w", err)
	}
	return conjur.Credential{
		URL: a.URL, Login: hostLogin(a.Login), ContentType: "application/json", Body: body,
		Refused: func() bool { a.keys.Forget(); return kept },
	}, nil
}

// sign returns the headers of the signed request as JSON. For some minutes, anyone
// who has them can log in.
func (a *IAM) sign(ctx context.Context) (secret.Value, error) {
	region, err := a.keys.Region(ctx)
	if err != nil {
		return secret.Value{}, err
	}
	req, err := identityRequest(region)
	if err != nil {
		return secret.Value{}, err
	}
	if region == global {
		region = defaultRegion // region of the global endpoint
	}
	keys, err := a.keys.Retrieve(ctx)
	if err != nil {
		return secret.Value{}, err
	}
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, emptyBody, "sts", region, time.Now().UTC()); err != nil {
		return secret.Value{}, a.keys.calls.explain(err, awsNone)
	}
	headers := map[string]string{"Host": req.Host}
	for name := range req.Header {
		headers[name] = req.Header.Get(name)
	}
	body, err := json.Marshal(headers)
	return secret.New(body), err
}

// identityRequest returns a request to the Security Token Service for the identity
// of its signer.
func identityRequest(region string) (*http.Request, error) {
	switch {
	case !regions.MatchString(region) || region[:3] == "cn-":
		return nil, fmt.Errorf("the region %.40q is not one that Conjur accepts; set AWS_REGION to one below amazonaws.com, such as %s", region, defaultRegion)
	case region == global:
		region = "sts"
	default:
		region = "sts." + region
	}
	return http.NewRequest(http.MethodGet, "https://"+region+".amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15", nil)
}
