package conjur

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/cyberark/conjur-api-go/conjurapi"
)

// PolicyChange is a policy to load into a branch.
type PolicyChange struct {
	Branch string // such as root
	Text   []byte
	Method string // POST adds, PATCH also deletes and changes, PUT replaces the branch
	DryRun bool   // only checks the policy
}

// LoadPolicy sends a policy, and returns the server's answer as JSON. The answer contains
// the API keys of new users and hosts. The error of a faulty policy is a *PolicyError.
// After an error of the connection it is unknown whether the policy was loaded.
func (c *Client) LoadPolicy(ctx context.Context, p PolicyChange) (json.RawMessage, error) {
	modes := map[string]conjurapi.PolicyMode{
		http.MethodPost: conjurapi.PolicyModePost, http.MethodPatch: conjurapi.PolicyModePatch, http.MethodPut: conjurapi.PolicyModePut,
	}
	req, err := c.api.LoadPolicyRequest(modes[p.Method], p.Branch, bytes.NewReader(p.Text), p.DryRun)
	if err != nil {
		return nil, err
	}
	r, err := c.ask(ctx, KindPolicy, fmt.Sprintf("into %q", p.Branch), req)
	if err != nil {
		return nil, fmt.Errorf("%w (it is not known whether the policy was loaded)", err)
	}
	switch r.status {
	case http.StatusOK, http.StatusCreated, http.StatusUnprocessableEntity:
		if faults := decodePolicyFaults(r.body); len(faults) > 0 {
			return nil, &PolicyError{faults}
		}
		if r.status != http.StatusUnprocessableEntity && json.Valid(r.body) {
			return r.body, nil
		}
	}
	return nil, r.statusError("")
}

// PolicyError lists why the server refuses a policy, each fault with its place.
type PolicyError struct{ Faults []string }

func (e *PolicyError) Error() string {
	return strings.ReplaceAll(strings.Join(e.Faults, "; "), "\n", ". ")
}

// decodePolicyFaults reads the faults of a policy, in the form of a load or of a dry run.
// A policy contains no values of variables, so the server's text may be shown.
func decodePolicyFaults(body []byte) (faults []string) {
	type fault struct {
		Line, Column int
		Message      string
	}
	var answer struct {
		Error  fault
		Errors []fault
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	for _, f := range append(answer.Errors, answer.Error) {
		switch {
		case f.Message == "":
		case f.Line > 0:
			faults = append(faults, fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message))
		default:
			faults = append(faults, f.Message)
		}
	}
	return faults
}
