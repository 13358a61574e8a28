package clouds

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

const lag = 60 * time.Millisecond

// shop is a service account.
const shop = "shop@acme.iam.gserviceaccount.com"

// double is a cloud, with what an application and Syncer do with it.
type double struct {
	*Cloud
	keys   func(cloud.Config) *cloud.Keys
	id     func(versions.Version) string // of its key
	signIn func(versions.Version) error
}

// doubles are the clouds, each by the name of its actuator.
var doubles = map[string]func(t testing.TB, before func(http.Handler) http.Handler) double{
	"aws": func(t testing.TB, before func(http.Handler) http.Handler) double {
		a := NewAWS(t, "shop", before)
		return double{&a.Cloud, a.keys, part("accessKeyId"), func(v versions.Version) error { return a.SignIn(part("accessKeyId")(v), part("secretAccessKey")(v)) }}
	},
	"gcp": func(t testing.TB, before func(http.Handler) http.Handler) double {
		g := NewGCP(t, shop, before)
		id := func(v versions.Version) string {
			for _, k := range g.Keys() {
				if string(g.File(k)) == part("key")(v) {
					return k.ID
				}
			}
			return part("key")(v)
		}
		return double{&g.Cloud, g.keys, id, func(v versions.Version) error { return g.SignIn(v.Parts["key"].Bytes()) }}
	},
	"azure": func(t testing.TB, before func(http.Handler) http.Handler) double {
		a := NewAzure(t, before)
		return double{&a.Cloud, a.keys, part("keyId"), func(v versions.Version) error { return a.SignIn(part("clientSecret")(v)) }}
	},
}

func part(name string) func(versions.Version) string {
	return func(v versions.Version) string { return string(v.Parts[name].Bytes()) }
}

// brisk are the waits of the tests.
func brisk(client *conjur.Client) cloud.Config {
	return cloud.Config{
		Current: current(client), DeleteAfter: 80 * time.Millisecond, Unused: time.Nanosecond, Consistent: 2 * lag, Timeout: 10 * time.Second,
	}
}

// keys returns the actuator for the user of a.
func (a *AWS) keys(config cloud.Config) *cloud.Keys {
	return cloud.NewAWS(config, cloud.AWS{User: a.User, Endpoint: a.URL, Credentials: true, Client: client, Admin: value(a.AdminJSON())})
}

// keys returns the actuator for the account of g. Syncer is the account of its Pod.
func (g *GCP) keys(config cloud.Config) *cloud.Keys {
	return cloud.NewGCP(config, cloud.GCP{Account: g.Account, Endpoint: g.URL, Client: client})
}

// keys returns the actuator for the application of a.
func (a *Azure) keys(config cloud.Config) *cloud.Keys {
	return cloud.NewAzure(config, cloud.Azure{Application: a.Application, Tenant: a.Tenant, Validity: 24 * time.Hour, Endpoint: a.URL, Client: client, Admin: value(a.AdminJSON())})
}

// value returns what a variable holds.
func value(text string) func(context.Context) (secret.Value, error) {
	return func(context.Context) (secret.Value, error) { return secret.New([]byte(text)), nil }
}

// client keeps no connections that outlive a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
