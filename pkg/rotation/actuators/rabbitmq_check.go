package actuators

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func (r *RabbitMQ) statements(users []string, _ bool) []string {
	all := []string{"rabbitmqctl add_user 'syncer' '…' && " + makeAdministrator("syncer")}
	for _, user := range users {
		all = append(all, r.createUser(user))
	}
	return all
}

// findObstacles finds missing users and rights, rights that differ, addresses that accept a wrong
// password, and connections of a user that has no version.
func (r *RabbitMQ) findObstacles(ctx context.Context, users []string, _ bool) (problems []error) {
	var admin struct {
		Name string
		Tags []string
	}
	err := r.asAdmin(ctx, func(a *rabbitAPI) error {
		if err := a.call(ctx, http.MethodGet, "whoami", nil, &admin); err != nil {
			return err
		}
		if !slices.Contains(admin.Tags, "administrator") {
			return fmt.Errorf("%s may not change users: %s", admin.Name, makeAdministrator(admin.Name, admin.Tags...))
		}
		problems = a.checkUsers(ctx, users)
		var has struct {
			None bool `json:"disable_stats"`
		}
		if err := a.call(ctx, http.MethodGet, "overview?columns=disable_stats", nil, &has); err != nil || !has.None {
			return err
		}
		return errors.New("RabbitMQ has no statistics, so a connection that has ended may hold a revocation forever; in rabbitmq.conf, remove management_agent.disable_metrics_collector and management.disable_stats")
	})
	if err != nil {
		problems = append(problems, err)
	}
	return append(problems, logIn(r.logIn).guess(ctx, r.Addresses, users, "check auth_backends and their cache in its rabbitmq.conf")...)
}

func (a *rabbitAPI) checkUsers(ctx context.Context, users []string) (problems []error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	marks, err := a.readMarks(ctx, users)
	if err != nil {
		return []error{err}
	}
	valid := func(user string) bool { return marks[user].state == accepted }
	begun := slices.ContainsFunc(users, valid)
	model, modelTags, rights := "", []string(nil), map[string]string(nil)
	for _, user := range users {
		if _, exists := marks[user]; !exists {
			wrong("there is no user %s: %s", user, a.createUser(user))
			continue
		}
		if user == "guest" {
			wrong("guest may only log in from the server itself (loopback_users); use another user")
		}
		if begun && !valid(user) { // it gets its rights with its next version
			if open, err := a.listConnections(ctx, user); err != nil || len(open) > 0 {
				wrong("%s has no version: %w", user, errors.Join(err, errors.New(strings.Join(open, "; "))))
			}
			continue
		}
		tags, has, err := a.rights(ctx, user)
		if err != nil {
			return append(problems, err)
		}
		if _, may := has[permissions(a.VHost)]; !may {
			wrong("%s may not use the virtual host %s: %s", user, a.VHost, a.permit(user))
		}
		if has[openMost] == shut {
			if valid(user) {
				wrong("%s may open no connection: rabbitmqctl clear_user_limits %s max-connections", user, forShell(user))
			}
			delete(has, openMost)
		}
		if model == "" {
			model, modelTags, rights = user, tags, has
			continue
		}
		if !slices.Equal(tags, modelTags) {
			wrong("%s has the tags %q, but %s has %q; make them equal", user, tags, model, modelTags)
		}
		paths := maps.Clone(has)
		maps.Copy(paths, rights)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if has[path] != rights[path] {
				wrong("%s differs between %s, which has %q, and %s, which has %q; make them equal", path, user, has[path], model, rights[path])
			}
		}
	}
	return problems
}
