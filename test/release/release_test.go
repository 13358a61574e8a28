//go:build long

// Package release tests what "make release" makes, with the commands that users run.
package release

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
)

// steps are the commands of docs/verify.md that need nothing but openssl and
// coreutils.
func steps(t *testing.T) []string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```sh\n *(.*?)\n *```").FindAllStringSubmatch(string(read(t, "../../docs", "verify.md")), 2)
	if len(blocks) != 2 || !strings.HasPrefix(blocks[0][1], "openssl") || !strings.HasPrefix(blocks[1][1], "sha256sum") {
		t.Fatalf("docs/verify.md does not start with openssl and sha256sum: %q", blocks)
	}
	return []string{blocks[0][1], blocks[1][1]}
}

// TestUsersVerifyARelease: the commands of docs/verify.md accept a release, and refuse
// it after a change of one byte in any file. They read the public key from elsewhere.
func TestUsersVerifyARelease(t *testing.T) {
	t.Parallel()
	repo, version := clone(t)
	dir, private := filepath.Join(t.TempDir(), "dist"), newKey(t)
	run(t, "", nil, tool, arguments(repo, version, dir, private)...)
	home := t.TempDir()
	run(t, home, nil, "openssl", "pkey", "-in", private, "-pubout", "-out", "syncer.pub")
	commands := strings.Join(steps(t), " && ")
	if out, err := try(dir, []string{"HOME=" + home}, "sh", "-c", commands); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key := publicKey(t, home)
	if err := verifyImage(t, dir, version, key); err != nil {
		t.Error(err)
	}
	if err := verifyProvenance(t, dir, version, key); err != nil {
		t.Error(err)
	}
	if err := verifyBundle(t, dir, key); err != nil {
		t.Error(err)
	}
	listed := string(read(t, dir, "SHA256SUMS"))
	for _, name := range names(t, dir) {
		path, content := filepath.Join(dir, name), read(t, dir, name)
		changed := slices.Clone(content)
		changed[len(changed)/2] ^= 1
		write(t, path, changed)
		_, err := try(dir, []string{"HOME=" + home}, "sh", "-c", commands)
		if name == "SHA256SUMS.sigstore.json" {
			err = verifyBundle(t, dir, key)
		}
		if err == nil {
			t.Errorf("%s: a changed byte is not noticed", name)
		}
		write(t, path, content)
		if !strings.HasPrefix(name, "SHA256SUMS") && !strings.Contains(listed, "  "+name+"\n") {
			t.Errorf("%s has no checksum", name)
		}
	}
}

// TestUsersRebuildARelease: without a key, a release has the same bytes and no signatures.
// No key is made.
func TestUsersRebuildARelease(t *testing.T) {
	t.Parallel()
	repo, version := clone(t)
	signed, rebuilt, home := filepath.Join(t.TempDir(), "signed"), filepath.Join(t.TempDir(), "rebuilt"), t.TempDir()
	run(t, "", nil, tool, arguments(repo, version, signed, newKey(t))...)
	out := run(t, "", []string{"XDG_CONFIG_HOME=" + home}, tool, arguments(repo, version, rebuilt, "")...)
	if !strings.Contains(out, "not signed") {
		t.Errorf("it does not say that nothing is signed: %s", out)
	}
	if made := names(t, home); slices.Contains(made, "syncer") {
		t.Error("made a key for the user")
	}
	run(t, rebuilt, nil, "sha256sum", "--check", "--strict", "--ignore-missing", filepath.Join(signed, "SHA256SUMS"))
	for _, name := range names(t, rebuilt) {
		if strings.Contains(name, ".sig") || strings.Contains(name, "provenance") || strings.HasSuffix(name, ".pub") {
			t.Errorf("%s: a signature without a key", name)
		}
	}
	readPackages(t, rebuilt, version)
}

// readPackages: what leaves the repository has licenses and links that work.
func readPackages(t *testing.T, dir, version string) {
	relative := regexp.MustCompile(`\]\([^:)]+\)`)
	name := "syncer_" + version + "_linux_amd64"
	for archive, file := range map[string]string{"syncer-" + version + ".tgz": "syncer/README.md", name + ".tar.gz": name + "/README.md"} {
		text := run(t, dir, nil, "tar", "-xzOf", archive, file)
		if links := relative.FindAllString(text, -1); len(links) > 0 || !strings.Contains(text, "/blob/v"+version+"/docs/install.md") {
			t.Errorf("%s: links %q", archive, links)
		}
	}
	image := deploy.ReadArchive(t, filepath.Join(dir, "syncer_"+version+"_image.tar"))
	top, platforms := image.Index(t)
	for _, d := range platforms {
		_, files := image.Image(t, d)
		if !bytes.Equal(files["licenses/LICENSE"].Content, read(t, "../..", "LICENSE")) || !bytes.Equal(files["licenses/NOTICE"].Content, read(t, dir, "NOTICE")) {
			t.Error("the image does not have LICENSE and NOTICE")
		}
	}
	bill := string(read(t, dir, "syncer_"+version+"_image.cdx.json"))
	for _, want := range []string{strings.TrimPrefix(top.Digest, "sha256:"), "pkg:golang/golang.org/x/crypto/x509roots/fallback@", "pkg:golang/std@", "pkg:golang/k8s.io/client-go@"} {
		if !strings.Contains(bill, want) {
			t.Errorf("the image's bill of materials has no %s", want)
		}
	}
}

// publicKey reads the key that verifies the release.
func publicKey(t *testing.T, dir string) *ecdsa.PublicKey {
	t.Helper()
	block, _ := pem.Decode(read(t, dir, "syncer.pub"))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PublicKey)
}

// verifyImage does what "cosign verify" and containers/image do, for the image and each
// platform's: a tag names a manifest, no index. That has one layer, a claim about the
// digest, which an annotation signs. The chart names the image's digest.
func verifyImage(t *testing.T, dir, version string, key *ecdsa.PublicKey) error {
	image := deploy.ReadArchive(t, filepath.Join(dir, "syncer_"+version+"_image.tar"))
	top, platforms := image.Index(t)
	if !strings.Contains(chartValues(t, dir, version), `digest: "`+top.Digest+`"`) {
		return fmt.Errorf("the chart does not name the image %s", top.Digest)
	}
	signatures := deploy.ReadArchive(t, filepath.Join(dir, "syncer_"+version+"_image.sig.tar"))
	tags := map[string]deploy.Descriptor{}
	for _, d := range manifests(t, signatures["index.json"]) {
		tags[d.Annotations["org.opencontainers.image.ref.name"]] = d
	}
	blob := func(digest string) []byte { return signatures["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
	for _, d := range append(platforms, top) {
		tag := strings.Replace(d.Digest, ":", "-", 1) + ".sig"
		if got := tags[tag].MediaType; got != "application/vnd.oci.image.manifest.v1+json" {
			return fmt.Errorf("%s is %q, no manifest", tag, got)
		}
		var one struct{ Layers []deploy.Descriptor }
		if err := json.Unmarshal(blob(tags[tag].Digest), &one); err != nil {
			return err
		}
		claim := blob(one.Layers[0].Digest)
		if !bytes.Contains(claim, []byte(d.Digest)) {
			return fmt.Errorf("the claim %s does not name %s", claim, d.Digest)
		}
		signed, err := base64.StdEncoding.DecodeString(one.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
		if err != nil {
			return err
		}
		if err := verify(key, claim, signed); err != nil {
			return err
		}
	}
	return nil
}

func manifests(t *testing.T, index []byte) []deploy.Descriptor {
	t.Helper()
	var i struct{ Manifests []deploy.Descriptor }
	if err := json.Unmarshal(index, &i); err != nil || len(i.Manifests) == 0 {
		t.Fatalf("%v: %s", err, index)
	}
	return i.Manifests
}

// bundle is a Sigstore bundle for a public key.
type bundle struct {
	MediaType            string
	VerificationMaterial struct{ PublicKey struct{ Hint []byte } }
	MessageSignature     struct {
		MessageDigest struct {
			Algorithm string
			Digest    []byte
		}
		Signature []byte
	}
	DSSEEnvelope json.RawMessage
}

// readBundle reads a bundle that the key verifies.
func readBundle(t *testing.T, dir, name string, key *ecdsa.PublicKey) (b bundle, err error) {
	if err := json.Unmarshal(read(t, dir, name), &b); err != nil {
		return b, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if hint := sha256.Sum256(der); err == nil && !bytes.Equal(b.VerificationMaterial.PublicKey.Hint, hint[:]) {
		err = errors.New("another key")
	}
	if b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		err = fmt.Errorf("a bundle of type %q", b.MediaType)
	}
	return b, err
}

// verifyBundle checks the bundle of the checksums.
func verifyBundle(t *testing.T, dir string, key *ecdsa.PublicKey) error {
	b, err := readBundle(t, dir, "SHA256SUMS.sigstore.json", key)
	if err != nil {
		return err
	}
	sums := read(t, dir, "SHA256SUMS")
	sum := sha256.Sum256(sums)
	if m := b.MessageSignature.MessageDigest; m.Algorithm != "SHA2_256" || !bytes.Equal(m.Digest, sum[:]) {
		return fmt.Errorf("the bundle is for %s %x", m.Algorithm, m.Digest)
	}
	return verify(key, sums, b.MessageSignature.Signature)
}

// verifyProvenance checks the envelope's signature, and that the bundle has the same one.
func verifyProvenance(t *testing.T, dir, version string, key *ecdsa.PublicKey) error {
	envelope := read(t, dir, "syncer_"+version+"_provenance.json")
	b, err := readBundle(t, dir, "syncer_"+version+"_provenance.sigstore.json", key)
	if err != nil || !bytes.Equal(b.DSSEEnvelope, envelope) {
		return fmt.Errorf("the bundle has another envelope, %v: %s", err, b.DSSEEnvelope)
	}
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct{ Sig []byte }
	}
	if err := json.Unmarshal(envelope, &e); err != nil {
		return err
	}
	if len(e.Signatures) != 1 {
		return fmt.Errorf("%d signatures, not one", len(e.Signatures))
	}
	// See github.com/secure-systems-lab/dsse/blob/master/protocol.md.
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	return verify(key, message, e.Signatures[0].Sig)
}

func verify(key *ecdsa.PublicKey, message, signature []byte) error {
	sum := sha256.Sum256(message)
	if !ecdsa.VerifyASN1(key, sum[:], signature) {
		return fmt.Errorf("the signature is not that of the message")
	}
	return nil
}

// chartValues are the default values of the release's chart.
func chartValues(t *testing.T, dir, version string) string {
	t.Helper()
	return run(t, dir, nil, "tar", "-xzOf", "syncer-"+version+".tgz", "syncer/values.yaml")
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range list {
		all = append(all, f.Name())
	}
	return all
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
