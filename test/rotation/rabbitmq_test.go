//go:build long

package rotation

import (
	"context"
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/logintest"
)

// inRabbitMQ are the logins of a shop in a RabbitMQ. The address is that of the API.
type inRabbitMQ struct {
	*shop
	server *logintest.RabbitMQ
}

// startRabbitMQ starts one, and returns what makes shops there.
func startRabbitMQ(t *testing.T) func(*testing.T) *shop {
	t.Helper()
	server := logintest.StartRabbitMQ(t)
	return func(t *testing.T) *shop {
		s := newShop(t)
		for _, user := range s.users {
			server.User(t, user, "x", "")
			server.Call(t, http.MethodPut, "/users/"+user, `{"password_hash":"","tags":""}`)
		}
		s.logins = inRabbitMQ{s, server}
		return s
	}
}

func (s inRabbitMQ) address() string { return strings.TrimPrefix(s.server.PlainAPI, "http://") }

func (s inRabbitMQ) actuator(client *conjur.Client, address string) login {
	server := &actuators.RabbitMQ{Addresses: []string{s.server.Addr}, API: "http://" + address, Plain: true, VHost: "/", Users: s.users,
		Admin: func(context.Context) (secret.Value, error) {
			return secret.New([]byte(`{"username":"admin","password":"admin"}`)), nil
		},
	}
	return &actuators.Turns{Set: set, Users: s.users, Server: server, Current: func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: client, ID: set}.Read(ctx)
		return held.Document, err
	}}
}

func (s inRabbitMQ) logIn(username, password string) error {
	conn, err := amqp.DialConfig("amqp://"+s.server.Addr, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: username, Password: password}}})
	if err != nil {
		return err
	}
	channel, err := conn.Channel()
	if err == nil {
		_, err = channel.QueueDeclare("", false, true, true, false, nil)
	}
	if closed := conn.Close(); err == nil {
		err = closed
	}
	return err
}

// left are the users with a password.
func (s inRabbitMQ) left() (all []string) {
	s.t.Helper()
	for _, user := range s.users {
		if !strings.Contains(s.server.Call(s.t, http.MethodGet, "/users/"+user, ""), `"password_hash":""`) {
			all = append(all, user)
		}
	}
	return all
}

func TestNoLoginFailsWhileRabbitMQRotates(t *testing.T) {
	t.Parallel()
	startRabbitMQ(t)(t).lives(elsewhere())
}

func TestWithTheGateForcedOpenLoginsToRabbitMQFail(t *testing.T) {
	t.Parallel()
	startRabbitMQ(t)(t).failsWithoutTheGate()
}

func TestFaultsAtEachBoundaryOfRabbitMQ(t *testing.T) {
	t.Parallel()
	survive(t, startRabbitMQ(t))
}
