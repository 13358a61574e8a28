package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/secretsync/syncer/deploy/tools/internal/oci"
)

// signer signs as cosign does: ECDSA over SHA-256, so that cosign and openssl verify it.
type signer struct{ private *ecdsa.PrivateKey }

// openKey reads the private key. COSIGN_PASSWORD is the password of an encrypted one,
// as for cosign.
func openKey(path string) (*signer, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s: other users can read the private key: run chmod 600", path)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc([]byte(os.Getenv("COSIGN_PASSWORD"))))
	if err != nil {
		return nil, fmt.Errorf("%s: not a private key that can be read: %w; if it has a password, give that in COSIGN_PASSWORD", path, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s: a key of type %T: make an ECDSA key for the curve P-256, so that cosign and openssl verify with the documented commands", path, key)
	}
	return &signer{private}, nil
}

// sign returns the signature of a message. The same key and message have the same
// signature (RFC 6979).
func (s *signer) sign(message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	return s.private.Sign(nil, sum[:], crypto.SHA256)
}

// envelope wraps a statement of in-toto in a signed envelope, as
// github.com/secure-systems-lab/dsse defines it.
func (s *signer) envelope(statement []byte) ([]byte, error) {
	const kind = "application/vnd.in-toto+json"
	signed, err := s.sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"payloadType": kind, "payload": statement,
		"signatures": []map[string]any{{"sig": signed}},
	})
}

// bundle returns the content, which is signed, as a bundle of Sigstore
// (github.com/sigstore/protobuf-specs). The field names the kind of the content.
func (s *signer) bundle(field string, content any) ([]byte, error) {
	public, err := x509.MarshalPKIXPublicKey(s.private.Public())
	if err != nil {
		return nil, err
	}
	hint := sha256.Sum256(public)
	return json.Marshal(map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": hint[:]}}, // as cosign's
		field:                  content,
	})
}

// imageSignature returns an image's signature in the form that cosign and containers/image
// look for beside the image. It is another image.
func (s *signer) imageSignature(digest v1.Hash) (v1.Image, error) {
	image, err := name.NewDigest(repository + "@" + digest.String())
	if err != nil {
		return nil, err
	}
	claim, err := json.Marshal(payload.Cosign{Image: image})
	if err != nil {
		return nil, err
	}
	signed, err := s.sign(claim)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(claim, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signed)},
	})
}

// sumsName is the file with the checksums.
const sumsName = "SHA256SUMS"

// writeChecksums writes the checksums of the artifacts.
func (r *release) writeChecksums() error {
	list, err := r.artifacts()
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, a := range list {
		fmt.Fprintf(&sums, "%s  %s\n", a.sum, a.name)
	}
	return r.write(sumsName, sums.Bytes())
}

// signArtifacts writes the signed provenance, and the signatures of the image: that of all
// platforms, and that of each. Nil signs nothing.
func (r *release) signArtifacts(s *signer) error {
	if s == nil {
		return nil
	}
	provenance, err := r.provenance(s)
	if err != nil {
		return err
	}
	bundle, err := s.bundle("dsseEnvelope", json.RawMessage(provenance))
	if err != nil {
		return err
	}
	signatures := map[string]v1.Image{}
	for _, digest := range r.images {
		if signatures["sha256-"+digest.Hex+".sig"], err = s.imageSignature(digest); err != nil {
			return err
		}
	}
	name := "syncer_" + r.version
	fmt.Fprintln(r.log, "writing", name+"_image.sig.tar")
	return errors.Join(
		r.write(name+"_provenance.json", provenance),
		r.write(name+"_provenance.sigstore.json", bundle),
		oci.WriteImages(r.file(name+"_image.sig.tar"), repository, signatures),
	)
}

// signChecksums writes the signature of the checksums. Nil signs nothing.
func (r *release) signChecksums(s *signer) error {
	if s == nil {
		fmt.Fprintln(r.log, "not signed, and not to be published: KEY names no private key")
		return nil
	}
	sums, err := os.ReadFile(r.file(sumsName))
	if err != nil {
		return err
	}
	signed, err := s.sign(sums)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(sums)
	bundle, err := s.bundle("messageSignature", map[string]any{
		"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": sum[:]},
		"signature":     signed,
	})
	if err != nil {
		return err
	}
	return errors.Join(r.write(sumsName+".sig", signed), r.write(sumsName+".sigstore.json", bundle))
}

// artifact is a file of the release.
type artifact struct {
	name string
	sum  string // SHA-256 in hex
}

// artifacts are the files that were made so far, in order of their names.
func (r *release) artifacts() ([]artifact, error) {
	list, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var made []artifact
	for _, f := range list {
		sum, err := checksum(r.file(f.Name()))
		if err != nil {
			return nil, err
		}
		made = append(made, artifact{f.Name(), sum})
	}
	return made, nil
}

// checksum is a file's SHA-256 sum in hex.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
