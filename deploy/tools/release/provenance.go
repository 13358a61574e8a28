package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// buildType names the build that the provenance describes: this command.
const buildType = "https://github.com/secretsync/syncer/deploy/tools/release@v1"

// writeProvenance writes who made the artifacts from what: the commit, Go's version
// and the modules' sums, as a signed statement of in-toto (slsa.dev/provenance/v1).
func (r *release) writeProvenance(s *signer) error {
	subjects, err := r.subjects()
	if err != nil {
		return err
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": r.version})
	if err != nil {
		return err
	}
	about := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:            buildType,
			ExternalParameters:   parameters,
			ResolvedDependencies: r.materials(),
		},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: buildType, Version: map[string]string{"go": r.binaries[0].info.GoVersion}},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(r.committed)},
		},
	}
	text, err := protojson.Marshal(about)
	if err != nil {
		return err
	}
	predicate := &structpb.Struct{}
	if err := protojson.Unmarshal(text, predicate); err != nil {
		return err
	}
	text, err = protojson.Marshal(&intoto.Statement{
		Type: intoto.StatementTypeUri, Subject: subjects,
		PredicateType: "https://slsa.dev/provenance/v1", Predicate: predicate,
	})
	if err != nil {
		return err
	}
	var statement bytes.Buffer // protojson varies its spaces
	if err := json.Compact(&statement, text); err != nil {
		return err
	}
	signed, err := s.envelope(statement.Bytes())
	if err != nil {
		return err
	}
	return r.write("syncer_"+r.version+"_provenance.json", signed)
}

// subjects are the artifacts that were made so far.
func (r *release) subjects() ([]*intoto.ResourceDescriptor, error) {
	list, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var subjects []*intoto.ResourceDescriptor
	for _, f := range list {
		sum, err := checksum(r.file(f.Name()))
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, &intoto.ResourceDescriptor{Name: f.Name(), Digest: map[string]string{"sha256": sum}})
	}
	return subjects, nil
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
