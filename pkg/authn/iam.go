package authn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	// awsTimeout bounds how long AWS's credentials may be looked for.
	awsTimeout = 30 * time.Second
	// defaultRegion is that of the request when AWS's configuration names none.
	defaultRegion = "us-east-1"
	// global stands for the endpoint that belongs to no region.
	global = "global"
	// emptyBody is the SHA-256 of the signed request's body.
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	// maxCause bounds what is shown of an error of AWS's library.
	maxCause = 300
)

// regions are those that Conjur accepts. Their part of AWS has the domain
// amazonaws.com.
var regions = regexp.MustCompile(`^([a-z]{2}(-gov)?-[a-z]+-\d|` + global + `)$`)

// IAM authenticates by a request to AWS's Security Token Service that is signed
// and not sent: Conjur sends it, and learns whose signature it is. Key, region
// and so on are found as every program on AWS finds them.
type IAM struct {
	URL   string // as in https://host/authn-iam/service
	Login string // of a host, with or without "host/"

	config *aws.Config // nil: not read yet
}

// Credential implements conjur.Authenticator.
func (a *IAM) Credential(ctx context.Context, _ conjur.Send) (conjur.Credential, error) {
	limited, cancel := context.WithTimeout(ctx, awsTimeout)
	defer cancel()
	kept := a.config != nil
	body, err := a.sign(limited)
	switch {
	case ctx.Err() != nil:
		return conjur.Credential{}, ctx.Err()
	case limited.Err() != nil:
		return conjur.Credential{}, fmt.Errorf("AWS's credentials: none found within %v", awsTimeout)
	case err != nil:
		a.config = nil
		return conjur.Credential{}, fmt.Errorf("AWS's credentials: %w", err)
	}
	return conjur.Credential{
		URL: a.URL, Login: hostLogin(a.Login), ContentType: "application/json", Body: body,
		Refused: func() bool { a.config = nil; return kept },
	}, nil
}

// sign returns the headers of the signed request as JSON. Whoever has them can
// log in, for some minutes.
func (a *IAM) sign(ctx context.Context) (secret.Value, error) {
	if a.config == nil {
		client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
		config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client))
		if err != nil {
			return secret.Value{}, brief(err)
		}
		a.config = &config
	}
	region := a.config.Region
	if region == "" {
		region = defaultRegion
	}
	req, err := identityRequest(region)
	if err != nil {
		return secret.Value{}, err
	}
	if region == global {
		region = defaultRegion // that endpoint's
	}
	keys, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return secret.Value{}, brief(err)
	}
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, emptyBody, "sts", region, time.Now().UTC()); err != nil {
		return secret.Value{}, brief(err)
	}
	headers := map[string]string{"Host": req.Host}
	for name := range req.Header {
		headers[name] = req.Header.Get(name)
	}
	body, err := json.Marshal(headers)
	return secret.New(body), err
}

// identityRequest asks the Security Token Service who signed it.
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

// brief makes an error of AWS's library a short line.
func brief(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxCause {
		text = text[:maxCause] + "…"
	}
	return errors.New(text)
}
