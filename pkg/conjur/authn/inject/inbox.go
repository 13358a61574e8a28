// Package inject receives the client certificate that Conjur's authn-k8s injects
// into a container. Conjur runs sh there and feeds it a script that writes a file.
// The Inbox waits for that file. In an image without a shell, the binary runs under
// the name sh and acts as the Receiver.
package inject

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
)

const (
	// awaited is the suffix of the file that records the expected key.
	awaited = ".awaited"
	// look is the interval between checks for the certificate.
	look = 50 * time.Millisecond
	// maxText bounds the file and the script. A certificate has about 2 KiB.
	maxText = 16 << 10
)

// Inbox is the location at which certificates arrive. It awaits one at a time, even
// if several identities of the process log in.
type Inbox struct {
	path     string
	awaiting chan struct{} // holds one element during Await
}

// NewInbox returns the Inbox for the file at path.
func NewInbox(path string) *Inbox { return &Inbox{path: path, awaiting: make(chan struct{}, 1)} }

// Await calls request, which asks Conjur for a certificate for the key, and waits
// at most wait for the certificate. The key is in PKIX form. Await ignores an older
// certificate and one for another key. It leaves no file behind.
func (i *Inbox) Await(ctx context.Context, key []byte, wait time.Duration, request func(context.Context) error) (*x509.Certificate, error) {
	select {
	case i.awaiting <- struct{}{}:
		defer func() { <-i.awaiting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := i.open(key); err != nil {
		return nil, fmt.Errorf("the folder of the client certificate cannot be used; mount an emptyDir that this user may write to at %s: %w", filepath.Dir(i.path), err)
	}
	defer i.close()
	if err := request(ctx); err != nil {
		return nil, err
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		certificate, why := i.readCertificate(key)
		if why == nil {
			return certificate, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, fmt.Errorf("no client certificate within %v: %w; Conjur's log says whether it could run sh in this container", wait, why)
		}
	}
}

// open removes an old certificate, and records the expected key.
func (i *Inbox) open(key []byte) error {
	if err := os.Remove(i.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return safefile.Replace(i.path+awaited, fingerprint(key))
}

// close stops the acceptance of certificates.
func (i *Inbox) close() {
	_ = os.Remove(i.path + awaited)
	_ = os.Remove(i.path)
}

// readCertificate returns the certificate for the key, once it has arrived.
func (i *Inbox) readCertificate(key []byte) (*x509.Certificate, error) {
	text, err := safefile.Read(i.path, maxText)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM", i.path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s holds no certificate", i.path)
	case !bytes.Equal(certificate.RawSubjectPublicKeyInfo, key):
		return nil, fmt.Errorf("%s holds a certificate for another key", i.path)
	}
	return certificate, nil
}

// fingerprint returns the recorded form of a key.
func fingerprint(key []byte) []byte {
	sum := sha256.Sum256(key)
	return hex.AppendEncode(nil, sum[:])
}
