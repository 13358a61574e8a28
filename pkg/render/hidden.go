package render

import "fmt"

// hidden returns the functions that harden inserts into the template.
func (r *run) hidden() map[string]any {
	return map[string]any{
		stepFunc:   r.step,
		enterFunc:  r.enter,
		leaveFunc:  r.leave,
		emitFunc:   r.emit,
		secretFunc: r.namedSecret,
		truthFunc:  r.truth,
		failFunc:   func(message string) (string, error) { return "", &functionError{name: "fail", why: message} },
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

// emit returns the text of a value that the template prints. A nil value is an error,
// where text/template would print <no value>. So are lists and maps, because nothing reads
// the form that Go prints.
func (r *run) emit(v any) (string, error) {
	text, ok := scalar(v)
	switch {
	case v == nil:
		return "", &functionError{name: "print", why: "there is no value"}
	case !ok:
		return "", &functionError{"print", typeName(v) + " cannot be printed; name a part of it, or use range, join or toJson", true}
	}
	fits(1, len(text))
	r.work.spend(len(text))
	return text, nil
}

// truth passes the value of a condition on.
func (r *run) truth(v any) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, safeError("if", p)
		}
	}()
	return condition(v), nil
}

// secret returns the value of an alias. The error must not name the alias, because
// a template may compute it from a value.
func (r *run) secret(alias string) string {
	if s, ok := r.secrets[alias].(templateSecret); ok {
		return s.Value
	}
	panic(unknownAlias("the group has no such alias"))
}

// namedSecret is secret for an alias that the template's text contains.
func (r *run) namedSecret(alias string) (string, error) {
	s, ok := r.secrets[alias].(templateSecret)
	if !ok {
		return "", unknownAlias(fmt.Sprintf("the group has no alias %q", alias))
	}
	r.work.spend(len(s.Value))
	return s.Value, nil
}

// unknownAlias means that a template uses an alias that its group lacks.
type unknownAlias string

func (u unknownAlias) Error() string { return string(u) }
