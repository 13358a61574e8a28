package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// buildType names the build that the provenance describes: this command.
const buildType = "https://github.com/secretsync/syncer/deploy/tools/release@v1"

// provenance says from what the artifacts were made: the commit, Go's version and the
// modules' sums, as a signed statement of in-toto (slsa.dev/provenance/v1).
func (r *release) provenance(s *signer) ([]byte, error) {
	list, err := r.artifacts()
	if err != nil {
		return nil, err
	}
	var subjects []*intoto.ResourceDescriptor
	for _, a := range list {
		subjects = append(subjects, &intoto.ResourceDescriptor{Name: a.name, Digest: map[string]string{"sha256": a.sum}})
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": r.version})
	if err != nil {
		return nil, err
	}
	about := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType:            buildType,
			ExternalParameters:   parameters,
			ResolvedDependencies: r.materials(),
		},
		RunDetails: &slsa.RunDetails{
			Builder: &slsa.Builder{Id: buildType, Version: map[string]string{"go": r.binaries[0].info.GoVersion}},
		},
	}
	text, err := protojson.Marshal(about)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	if err := protojson.Unmarshal(text, predicate); err != nil {
		return nil, err
	}
	text, err = protojson.Marshal(&intoto.Statement{
		Type: intoto.StatementTypeUri, Subject: subjects,
		PredicateType: "https://slsa.dev/provenance/v1", Predicate: predicate,
	})
	if err != nil {
		return nil, err
	}
	var statement bytes.Buffer // protojson varies its spaces
	if err := json.Compact(&statement, text); err != nil {
		return nil, err
	}
	return s.envelope(statement.Bytes())
}

// materials are what the artifacts were made from.
func (r *release) materials() []*intoto.ResourceDescriptor {
	list := []*intoto.ResourceDescriptor{{
		Uri: "git+https://github.com/secretsync/syncer", Digest: map[string]string{"gitCommit": r.commit},
	}}
	for _, m := range r.modules() {
		d := &intoto.ResourceDescriptor{Uri: packageURL(m.Path, m.Version)}
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
			d.Digest = map[string]string{"dirHash": hex.EncodeToString(sum)} // as in-toto's digest_set.md defines it
		}
		list = append(list, d)
	}
	return list
}
