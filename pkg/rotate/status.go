package rotate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/versions"
)

// Report is what status says of a set. No byte of a part is in it.
type Report struct {
	Set      string          `json:"set"`
	Problem  string          `json:"problem,omitempty"` // then nothing else is known
	Owner    string          `json:"owner,omitempty"`
	Step     uint64          `json:"step,omitempty"`
	Stage    string          `json:"stage,omitempty"`
	Since    time.Time       `json:"since,omitzero"` // of the last step
	Primary  string          `json:"primary,omitempty"`
	Versions []VersionReport `json:"versions,omitempty"`
}

// VersionReport is what status says of a version.
type VersionReport struct {
	ID    string         `json:"id"`
	State versions.State `json:"state"`
	Since time.Time      `json:"since"`
	Parts []string       `json:"parts,omitempty"`
}

// Status returns what there is of the set.
func (s Set) Status(ctx context.Context) Report {
	r := Report{Set: s.ID}
	held, err := s.Read(ctx)
	switch {
	case err != nil:
		r.Problem = strings.TrimPrefix(err.Error(), "set "+s.ID+": ")
		return r
	case held.Document == nil:
		r.Problem = "it has not begun; use init"
		return r
	}
	primary, _ := held.Primary()
	r.Owner, r.Step, r.Stage, r.Primary = held.Owner, held.Step, held.Stage(), primary.ID
	for _, v := range held.Versions {
		if v.Since.After(r.Since) {
			r.Since = v.Since
		}
		r.Versions = append(r.Versions, VersionReport{v.ID, v.State, v.Since, v.PartNames()})
	}
	return r
}

// Check returns all that would keep the set from being rotated: what is wrong
// with it, the rights that are missing, the consumers that do not answer.
func (s Set) Check(ctx context.Context, gate Gate) (problems []string) {
	for _, privilege := range []string{"execute", "update"} {
		switch r := s.Conjur.Check(ctx, nil, s.ID, privilege); {
		case r.Form == conjur.Missing:
			return []string{ErrUndeclared.Error()}
		case r.Form == conjur.No:
			problems = append(problems, fmt.Sprintf("this identity lacks %q on it; permit that in the policy", privilege))
		case r.Err != nil:
			problems = append(problems, fmt.Sprintf("whether this identity has %q is not known: %v", privilege, r.Err))
		}
	}
	report := s.Status(ctx)
	if report.Problem != "" {
		return append(problems, report.Problem)
	}
	held, err := s.Read(ctx)
	if err != nil {
		return append(problems, err.Error())
	}
	primary, _ := held.Primary()
	return append(problems, gate.introduced(ctx, held.Document, primary)...)
}
