//go:build long

// Package release tests what "make release" makes, with the commands that users run.
package release

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// isSignature reports whether a file is a signature. ECDSA's are random.
func isSignature(name string) bool {
	return strings.Contains(name, ".sig") || strings.HasSuffix(name, "_provenance.json")
}

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
// it after a change of one byte in any file.
func TestUsersVerifyARelease(t *testing.T) {
	t.Parallel()
	repo, version := clone(t)
	dir := filepath.Join(t.TempDir(), "dist")
	run(t, "", nil, tool, arguments(repo, version, dir, newKey(t))...)
	commands := strings.Join(steps(t), " && ")
	if out, err := try(dir, nil, "sh", "-c", commands); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key := publicKey(t, dir)
	if err := verifyImage(t, dir, version, key); err != nil {
		t.Error(err)
	}
	if err := verifyProvenance(t, dir, version, key); err != nil {
		t.Error(err)
	}
	for _, name := range names(t, dir) {
		path, content := filepath.Join(dir, name), read(t, dir, name)
		changed := slices.Clone(content)
		changed[len(changed)/2] ^= 1
		write(t, path, changed)
		_, err := try(dir, nil, "sh", "-c", commands)
		switch {
		case strings.HasSuffix(name, "_image.sig.tar"):
			err = verifyImage(t, dir, version, key)
		case strings.HasSuffix(name, "_provenance.json"):
			err = verifyProvenance(t, dir, version, key)
		}
		if err == nil {
			t.Errorf("%s: a changed byte is not noticed", name)
		}
		write(t, path, content)
	}
	listed := string(read(t, dir, "SHA256SUMS"))
	for _, name := range names(t, dir) {
		if !isSignature(name) && name != "SHA256SUMS" && name != "syncer.pub" && !strings.Contains(listed, "  "+name+"\n") {
			t.Errorf("%s has no checksum", name)
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

// verifyImage does what "cosign verify" does: the signature's image has one layer, a
// claim about the image's digest, which an annotation signs. The chart names the same
// digest.
func verifyImage(t *testing.T, dir, version string, key *ecdsa.PublicKey) error {
	image := untar(t, filepath.Join(dir, "syncer_"+version+"_image.tar"))
	digest := manifests(t, image["index.json"])[0].Digest
	if !strings.Contains(chartValues(t, dir, version), `digest: "`+digest+`"`) {
		return fmt.Errorf("the chart does not name the image %s", digest)
	}
	signature := untar(t, filepath.Join(dir, "syncer_"+version+"_image.sig.tar"))
	blob := func(digest string) []byte { return signature["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
	var index, one struct {
		Manifests, Layers []descriptor
	}
	if err := json.Unmarshal(signature["index.json"], &index); err != nil {
		return err
	}
	if err := json.Unmarshal(blob(index.Manifests[0].Digest), &index); err != nil {
		return err
	}
	if err := json.Unmarshal(blob(index.Manifests[0].Digest), &one); err != nil {
		return err
	}
	claim := blob(one.Layers[0].Digest)
	if !bytes.Contains(claim, []byte(digest)) {
		return fmt.Errorf("the claim %s does not name %s", claim, digest)
	}
	signed, err := base64.StdEncoding.DecodeString(one.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		return err
	}
	return verify(key, claim, signed)
}

type descriptor struct {
	Digest      string
	Annotations map[string]string
}

func manifests(t *testing.T, index []byte) []descriptor {
	t.Helper()
	var i struct{ Manifests []descriptor }
	if err := json.Unmarshal(index, &i); err != nil || len(i.Manifests) == 0 {
		t.Fatalf("%v: %s", err, index)
	}
	return i.Manifests
}

// verifyProvenance checks the envelope's signature and that it names the commit.
func verifyProvenance(t *testing.T, dir, version string, key *ecdsa.PublicKey) error {
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct{ Sig []byte }
	}
	if err := json.Unmarshal(read(t, dir, "syncer_"+version+"_provenance.json"), &e); err != nil {
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

// untar reads the files of an archive.
func untar(t *testing.T, path string) map[string][]byte {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	files := map[string][]byte{}
	for archive := tar.NewReader(f); ; {
		h, err := archive.Next()
		if err != nil {
			return files // also the end of one that was changed
		}
		files[h.Name], _ = io.ReadAll(archive)
	}
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
