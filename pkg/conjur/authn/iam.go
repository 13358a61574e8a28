package authn

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/internal/lazyregexp"
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
var regions = lazyregexp.New(`^([a-z]{2}(-gov)?-[a-z]+-\d|` + global + `)$`)

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
	case !regions().MatchString(region) || region[:3] == "cn-":
		return nil, fmt.Errorf("the region %.40q is not one that Conjur accepts; set AWS_REGION to one below amazonaws.com, such as %s", region, defaultRegion)
	case region == global:
		region = "sts"
	default:
		region = "sts." + region
	}
	return http.NewRequest(http.MethodGet, "https://"+region+".amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15", nil)
}

// AWSKeys finds the keys with which this process signs requests to AWS. It searches
// where other AWS programs do: variables, files, web identity (IRSA), the service of the
// container or the instance. It renews keys that expire. One goroutine uses it.
type AWSKeys struct {
	config *aws.Config // nil until it is read
	calls  awsCalls
}

// Region returns the configured region; us-east-1 if none is.
func (k *AWSKeys) Region(ctx context.Context) (string, error) {
	k.calls.bind(ctx)
	if k.config == nil {
		config, err := k.load(ctx)
		if err != nil {
			return "", err
		}
		k.config = &config
	}
	if k.config.Region == "" {
		return defaultRegion, nil
	}
	return k.config.Region, nil
}

// Retrieve returns the keys. The error contains nothing that was received.
func (k *AWSKeys) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if _, err := k.Region(ctx); err != nil {
		return aws.Credentials{}, err
	}
	keys, err := k.config.Credentials.Retrieve(ctx)
	if err != nil {
		return keys, k.calls.explain(err, awsNone)
	}
	if !keys.HasKeys() {
		return keys, errors.New("the credentials that were found lack a key")
	}
	return keys, nil
}

// Forget drops the keys, for example because AWS refused them. The next call finds them
// again.
func (k *AWSKeys) Forget() { k.config = nil }

// load reads the configuration of AWS's library from variables and files.
func (k *AWSKeys) load(ctx context.Context) (aws.Config, error) {
	if bundle := os.Getenv("AWS_CA_BUNDLE"); bundle != "" { // the library's error lacks the cause
		if _, err := certs.ReadRoots(bundle); err != nil {
			return aws.Config{}, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
		}
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client),
		awsconfig.WithAPIOptions([]func(*middleware.Stack) error{k.calls.watch}),
		awsconfig.WithEndpointCredentialOptions(func(o *endpointcreds.Options) { o.HTTPClient = client }),
		// The library logs to standard error, where a write may block.
		awsconfig.WithLogger(logging.Nop{}),
		// The caller retries.
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return config, k.calls.explain(err, "the variables AWS_… or AWS's configuration files are not valid; \"aws configure list\" reads the same")
	}
	return config, nil
}

// awsCalls observes the requests of AWS's library. The library searches for keys in
// the background, with a context that never ends. awsCalls ends its requests with
// the bound context. It observes them inside the library, because only the
// library's HTTP client supports AWS_CA_BUNDLE.
type awsCalls struct {
	mu       sync.Mutex
	ctx      context.Context
	answered string // service and status since bind; empty if none answered
}

func (c *awsCalls) bind(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.answered = ctx, ""
}

// watch routes all requests of a client of the library through do.
func (c *awsCalls) watch(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Syncer", c.do), middleware.After)
}

// do makes one request. It truncates an answer that is too long for keys, so that
// the library cannot parse it.
func (c *awsCalls) do(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	c.mu.Lock()
	ctx = endsWith{c.ctx, ctx}
	c.mu.Unlock()
	out, metadata, err := next.HandleDeserialize(ctx, in)
	req, sent := in.Request.(*smithyhttp.Request)
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if err == nil && sent && ok {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxMetadata), resp.Body}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answered = fmt.Sprintf("%s answered %d", req.URL.Host, resp.StatusCode)
	}
	return out, metadata, err
}

// endsWith is the library's context with a different end.
type endsWith struct {
	context.Context
	values context.Context
}

func (e endsWith) Value(key any) any { return e.values.Value(key) }

// awsNone is the reason if the library gives none that is safe to show.
const awsNone = "none found that can be used, neither in variables and files nor by asking the container's or the instance's service"

// explain converts an error of AWS's library into one that is safe to show, because
// the library quotes the answer. The result says which service was asked and
// how that failed, or otherwise the reason.
func (c *awsCalls) explain(err error, reason string) error {
	var text []string
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		text = append(text, op.Service()+" "+op.Operation())
	}
	if profile, ok := errors.AsType[awsconfig.SharedConfigProfileNotExistError](err); ok {
		text = append(text, "there is no profile "+profile.Profile)
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		text = append(text, path.Error())
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		text = append(text, op.Error())
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		text = append(text, "the service's certificate is signed by an authority that is not known; name its file in AWS_CA_BUNDLE")
	}
	if len(text) == 0 {
		text = []string{reason}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered != "" {
		text = append(text, c.answered)
	}
	return errors.New(strings.Join(text, ": "))
}
