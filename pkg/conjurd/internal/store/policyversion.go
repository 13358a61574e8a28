package store

import (
	"encoding/binary"
	"encoding/json"
	"time"
)

// PolicyVersion is one text that was loaded into a policy.
type PolicyVersion struct {
	Version    uint64    `json:"version"`
	CreatedAt  time.Time `json:"created_at"`
	Text       string    `json:"policy_text"`
	SHA256     string    `json:"policy_sha256"`
	FinishedAt time.Time `json:"finished_at"`
	ClientIP   string    `json:"client_ip"`
	Role       string    `json:"role"`
}

// policyVersionLimit bounds the number of stored texts of a policy, as in the
// genuine server.
const policyVersionLimit = 20

// PolicyVersions lists the stored texts, oldest first.
func (t *Tx) PolicyVersions(policy string) ([]PolicyVersion, error) {
	var out []PolicyVersion
	for _, v := range scan(t.policies, prefix(policy)) {
		var p PolicyVersion
		if err := json.Unmarshal(v, &p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// AddPolicyVersion stores p under the next number and returns that number.
func (t *Tx) AddPolicyVersion(policy string, p PolicyVersion) (uint64, error) {
	last := uint64(0)
	for k := range scan(t.policies, prefix(policy)) {
		last = binary.BigEndian.Uint64([]byte(k))
	}
	p.Version = last + 1
	if p.Version > policyVersionLimit {
		if err := t.policies.Delete(valueKey(policy, p.Version-policyVersionLimit)); err != nil {
			return 0, err
		}
	}
	return p.Version, put(t.policies, valueKey(policy, p.Version), p)
}

func (t *Tx) clearPolicies(id string) error {
	for _, k := range keys(t.policies, prefix(id)) {
		if err := t.policies.Delete(append(prefix(id), k...)); err != nil {
			return err
		}
	}
	return nil
}
