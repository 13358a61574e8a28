package render

import (
	"fmt"
	"reflect"
)

// hidden returns the functions that harden inserts into the template.
func (r *run) hidden() map[string]any {
	return map[string]any{
		stepFunc:   r.step,
		enterFunc:  r.enter,
		leaveFunc:  r.leave,
		emitFunc:   r.emit,
		secretFunc: r.namedSecret,
		failFunc:   func(message string) (string, error) { return "", &functionError{"fail", message} },
	}
}

func (r *run) step(cost int) string {
	r.work.spend(cost * stepWork)
	return ""
}

func (r *run) enter(cost int) string {
	if r.depth++; r.depth > maxNesting {
		panic(&limitError{fmt.Sprintf("more than %d templates call each other", maxNesting)})
	}
	return r.step(cost)
}

func (r *run) leave(int) string {
	r.depth--
	return ""
}

// emit returns the text of a value that the template prints. A nil value is an
// error, where text/template would print <no value>.
func (r *run) emit(v any) (string, error) {
	if v == nil {
		return "", &functionError{"print", "there is no value"}
	}
	whole := size(reflect.ValueOf(v), true, maxResult)
	fits(1, whole)
	r.work.spend(whole)
	return fmt.Sprint(v), nil
}

// secret returns the value of an alias. The error must not name the alias, because
// a template may compute it from a value.
func (r *run) secret(alias string) (string, error) {
	if s, ok := r.secrets[alias].(templateSecret); ok {
		return s.Value, nil
	}
	return "", unknownAlias("the group has no such alias")
}

// namedSecret is secret for an alias that the template's text contains.
func (r *run) namedSecret(alias string) (string, error) {
	value, err := r.secret(alias)
	if err != nil {
		return "", unknownAlias(fmt.Sprintf("the group has no alias %q", alias))
	}
	r.work.spend(len(value))
	return value, nil
}

// unknownAlias means that a template uses an alias that its group lacks.
type unknownAlias string

func (u unknownAlias) Error() string { return string(u) }
