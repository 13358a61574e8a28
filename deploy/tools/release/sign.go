package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/secretsync/syncer/deploy/tools/internal/oci"
)

// signer signs as cosign does: ECDSA over SHA-256, so that cosign and openssl verify it.
type signer struct{ signature.SignerVerifier }

// openKey reads the private key. COSIGN_PASSWORD is the password of an encrypted one,
// as for cosign. Without a path, the key is that of the user. It is made if it is
// missing.
func openKey(path string, log io.Writer) (*signer, error) {
	password := cryptoutils.StaticPasswordFunc([]byte(os.Getenv("COSIGN_PASSWORD")))
	made := path == ""
	if made {
		home, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("%w: name the file with the private key with KEY", err)
		}
		path = filepath.Join(home, "syncer", "release.key")
	}
	info, err := os.Stat(path)
	switch {
	case made && errors.Is(err, fs.ErrNotExist):
		err = makeKey(path, password, log)
	case err == nil && info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("%s: other users can read the private key: run chmod 600", path)
	}
	if err != nil {
		return nil, err
	}
	s, err := signature.LoadSignerVerifierFromPEMFile(path, crypto.SHA256, password)
	if err != nil {
		return nil, fmt.Errorf("%s: not a private key that can be read: %w; if it has a password, give that in COSIGN_PASSWORD", path, err)
	}
	public, err := s.PublicKey()
	if err != nil {
		return nil, err
	}
	if _, ok := public.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("%s: a key of type %T: make an ECDSA key, so that cosign and openssl verify with the documented commands", path, public)
	}
	return &signer{s}, nil
}

// makeKey writes a new private key that only this user may read.
func makeKey(path string, password cryptoutils.PassFunc, log io.Writer) error {
	if os.Getenv("COSIGN_PASSWORD") == "" {
		password = nil // no encryption
	}
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), password)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, private, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(log, "made a new key, %s: keep it safe, and publish this public key where users find it:\n%s", path, public)
	return nil
}

// sign returns the signature of a message.
func (s *signer) sign(message []byte) ([]byte, error) {
	return s.SignMessage(bytes.NewReader(message))
}

// envelope wraps a statement of in-toto in a signed envelope.
func (s *signer) envelope(statement []byte) ([]byte, error) {
	return dsse.WrapSigner(s.SignerVerifier, "application/vnd.in-toto+json").SignMessage(bytes.NewReader(statement))
}

// publicKey returns the public key as PEM.
func (s *signer) publicKey() ([]byte, error) {
	key, err := s.PublicKey()
	if err != nil {
		return nil, err
	}
	return cryptoutils.MarshalPublicKeyToPEM(key)
}

// imageSignature returns the image's signature in the form that cosign looks for beside
// an image. It is another image.
func (s *signer) imageSignature(repository string, digest v1.Hash) (v1.ImageIndex, error) {
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
	one, err := mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(claim, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signed)},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: one}), nil
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

// sign writes the signatures: that of the checksums, that of the image, and the
// signed provenance.
func (r *release) sign(s *signer) error {
	sums, err := os.ReadFile(r.file(sumsName))
	if err != nil {
		return err
	}
	provenance, err := r.provenance(s)
	if err != nil {
		return err
	}
	signed, err := s.sign(sums)
	if err != nil {
		return err
	}
	key, err := s.publicKey()
	if err != nil {
		return err
	}
	image, err := s.imageSignature(repository, r.image)
	if err != nil {
		return err
	}
	file := "syncer_" + r.version + "_image.sig.tar"
	fmt.Fprintln(r.log, "writing", file)
	return errors.Join(
		r.write(sumsName+".sig", signed),
		r.write("syncer_"+r.version+"_provenance.json", provenance),
		r.write("syncer.pub", key),
		oci.WriteIndex(r.file(file), repository+":sha256-"+r.image.Hex+".sig", image),
	)
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
