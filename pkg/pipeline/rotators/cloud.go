package rotators

import (
	"context"
	"net/http"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// cloud returns the actuator of a set whose keys a cloud issues, and the place of the
// cloud; nil for other sets.
func (a assembly) cloud(set config.RotatedSet) (keys *cloud.Keys, place string) {
	waits := func(unused, deleteAfter time.Duration) cloud.Config {
		return cloud.Config{Current: a.current(set.Set), Adopts: len(set.Adopt) > 0, Unused: unused, DeleteAfter: deleteAfter, Timeout: set.Timeout}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // steps are rare
	client := &http.Client{Transport: transport}
	if s := set.AWS; s != nil {
		own := cloud.AWS{User: s.User, Region: s.Region, Endpoint: s.Endpoint, Credentials: s.Credentials, Client: client}
		if s.Admin != "" {
			own.Admin = a.value(s.Admin)
		}
		return cloud.NewAWS(waits(s.Unused, s.DeleteAfter), own), "aws"
	}
	if s := set.GCP; s != nil {
		own := cloud.GCP{Account: s.Account, Project: s.Project, Endpoint: s.Endpoint, Client: client}
		switch {
		case s.Admin != "":
			own.Admin = a.value(s.Admin)
		case s.Self:
			own.Admin = a.primary(set, cloud.GoogleCredentials)
		}
		return cloud.NewGCP(waits(s.Unused, s.DeleteAfter), own), "gcp"
	}
	if s := set.Azure; s != nil {
		own := cloud.Azure{Application: s.Application, Tenant: s.Tenant, Validity: s.Validity, Endpoint: s.Endpoint, Client: client}
		switch {
		case s.Admin != "":
			own.Admin = a.value(s.Admin)
		case s.Self:
			own.Admin = a.primary(set, own.Credentials)
		}
		return cloud.NewAzure(waits(0, 0), own), "azure"
	}
	return nil, ""
}

// primary returns a function that reads Syncer's own credentials from the primary of a
// set. Before the first promotion, it reads the variables that the set adopts.
func (a assembly) primary(set config.RotatedSet, from func(versions.Version) secret.Value) func(context.Context) (secret.Value, error) {
	return func(ctx context.Context) (secret.Value, error) {
		held, err := rotation.Set{Conjur: a.client, ID: set.Set}.Read(ctx)
		if err != nil {
			return secret.Value{}, err
		}
		if held.Document != nil {
			defer held.Wipe()
			if v, ok := held.Primary(); ok {
				return from(v), nil
			}
		}
		v := versions.Version{Parts: map[string]secret.Value{}}
		for part, id := range set.Adopt {
			value, err := a.value(id)(ctx)
			if err != nil {
				return secret.Value{}, err
			}
			defer value.Wipe()
			v.Parts[part] = value
		}
		return from(v), nil
	}
}
