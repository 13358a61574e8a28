package rotators

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// actuator returns the actuator that makes the outside system accept the versions of a
// set, and the place of that system. It returns nil for keys.
func (a assembly) actuator(set config.RotatedSet) (actuators.Actuator, string, error) {
	switch {
	case set.PostgreSQL != nil:
		p := set.PostgreSQL
		return &actuators.Turns{
			Set: set.Set, Users: p.Users, EndSessions: p.EndSessions, Timeout: set.Timeout,
			Server: &actuators.PostgreSQL{Addresses: p.Address, Admin: a.value(p.Admin), Poolers: p.Pooler, CA: p.CA, Plain: p.Plain},
		}, "postgresql " + p.Address[0], nil
	case set.MySQL != nil:
		p := set.MySQL
		server, place := &actuators.MySQL{Addresses: p.Address, Admin: a.value(p.Admin), CA: p.CA, Plain: p.Plain}, "mysql "+p.Address[0]
		if len(p.Users) == 1 {
			return &actuators.Overlap{
				Set: set.Set, User: p.Users[0], EndSessions: p.EndSessions, Current: a.current(set.Set), Timeout: set.Timeout, Server: server,
			}, place, nil
		}
		return &actuators.Turns{Set: set.Set, Users: p.Users, EndSessions: p.EndSessions, Timeout: set.Timeout, Server: server}, place, nil
	case set.RabbitMQ != nil:
		p := set.RabbitMQ
		return &actuators.Turns{
			Set: set.Set, Users: p.Users, EndSessions: p.EndSessions, Current: a.current(set.Set), Timeout: set.Timeout,
			Server: &actuators.RabbitMQ{Addresses: p.Address, API: p.API, Admin: a.value(p.Admin), VHost: p.VHost, Users: p.Users, CA: p.CA, Plain: p.Plain},
		}, "rabbitmq " + p.Address[0], nil
	case set.Redis != nil:
		p := set.Redis
		return &actuators.Overlap{
			Set: set.Set, User: p.Users[0], EndSessions: p.EndSessions, Current: a.current(set.Set), Timeout: set.Timeout,
			Server: &actuators.Redis{Addresses: p.Address, Admin: a.value(p.Admin), CA: p.CA, Plain: p.Plain},
		}, "redis " + p.Address[0], nil
	case set.APIKeys != nil:
		return &actuators.APIKeys{ID: set.Set, Hosts: set.APIKeys.Hosts, Conjur: a.client, Set: a.current(set.Set)}, "conjur", nil
	case set.HTTP != nil:
		return a.service(set)
	case set.Exec != nil:
		steps := &actuators.Steps{Set: set.Set, Timeout: set.Timeout, Send: actuators.Exec(config.WithoutCredentials(os.Environ()), set.Exec.Command...)}
		if set.Exec.Key != "" {
			steps.Key = a.value(set.Exec.Key)
		}
		return steps, set.Exec.Command[0], nil
	}
	if keys, place := a.cloud(set); keys != nil {
		return keys, place, nil
	}
	return nil, "", nil
}

// Statements returns what an administrator of a server runs before a set of its users can
// rotate. Each "…" stands for a password. Other sets have none.
func Statements(set config.RotatedSet) []string {
	if _, server := set.Server(); server == nil {
		return nil
	}
	actuator, _, _ := assembly{}.actuator(set) // never an error for a server
	return actuator.(interface{ Statements() []string }).Statements()
}

// service returns the actuator of a service. Its place is only the host, because the URL
// may contain data that must not be in a message.
func (a assembly) service(set config.RotatedSet) (actuators.Actuator, string, error) {
	to, err := url.Parse(set.HTTP.URL)
	if err != nil {
		return nil, "", errors.New("the URL of http cannot be read")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // steps are rare
	if set.HTTP.CA != "" {
		roots, err := certs.ReadRoots(set.HTTP.CA)
		if err != nil {
			return nil, "", fmt.Errorf("http.ca: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	send := actuators.HTTP(set.HTTP.URL, &http.Client{Transport: transport})
	return &actuators.Steps{Set: set.Set, Key: a.value(set.HTTP.Key), Send: send, Timeout: set.Timeout}, to.Host, nil
}

// current returns a function that reads a set.
func (a assembly) current(id string) func(context.Context) (*versions.Document, error) {
	return func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: a.client, ID: id}.Read(ctx)
		if err == nil && held.Document == nil {
			err = fmt.Errorf("the set %s has not begun", id)
		}
		return held.Document, err
	}
}

// value returns a function that reads a variable for an actuator.
func (a assembly) value(id string) func(context.Context) (secret.Value, error) {
	return func(ctx context.Context) (secret.Value, error) {
		values := a.client.Variable(ctx, id, "")
		if value, ok := values.Found[id]; ok {
			return value, nil
		}
		return secret.Value{}, fmt.Errorf("the variable %q cannot be read: %w", id, errors.Join(values.Err, values.Bad[id]))
	}
}
