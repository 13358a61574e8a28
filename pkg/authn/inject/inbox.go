// Package inject takes the client certificate that Conjur's authn-k8s brings
// into a container: Conjur runs sh there and feeds it a script that writes a
// file. The Inbox waits for that file. In an image without a shell the binary
// answers to the name sh, as the Receiver.
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

	"github.com/secretsync/syncer/pkg/safefile"
)

const (
	// awaited is what the name of the file has at its end that says for which
	// key a certificate is awaited.
	awaited = ".awaited"
	// look is the time between two looks for the certificate.
	look = 50 * time.Millisecond
	// maxText bounds the file and the script: a certificate of 2 KiB or so.
	maxText = 16 << 10
)

// Inbox is the place that certificates are brought to. One is awaited at a time,
// also when several identities of the process log in.
type Inbox struct {
	path string
	turn chan struct{} // holds one element while a certificate is awaited
}

// NewInbox returns the Inbox for the file at path.
func NewInbox(path string) *Inbox { return &Inbox{path: path, turn: make(chan struct{}, 1)} }

// Await calls request, which asks Conjur for a certificate for the key, and
// waits for it for the given time. The key is in PKIX form. What was there
// before, or is for another key, does not count. No file stays behind.
func (i *Inbox) Await(ctx context.Context, key []byte, wait time.Duration, request func(context.Context) error) (*x509.Certificate, error) {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := i.open(key); err != nil {
		return nil, fmt.Errorf("the folder of the client certificate is of no use; mount an emptyDir that this user may write to at %s: %w", filepath.Dir(i.path), err)
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
		certificate, why := i.read(key)
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

// open removes what is there, and says for which key a certificate may come.
func (i *Inbox) open(key []byte) error {
	if err := os.Remove(i.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replaceFile(i.path+awaited, fingerprint(key))
}

// close lets nothing more come.
func (i *Inbox) close() {
	_ = os.Remove(i.path + awaited)
	_ = os.Remove(i.path)
}

// read returns the certificate that has come for the key.
func (i *Inbox) read(key []byte) (*x509.Certificate, error) {
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

// fingerprint is how a key is written down.
func fingerprint(key []byte) []byte {
	sum := sha256.Sum256(key)
	return hex.AppendEncode(nil, sum[:])
}

// replaceFile puts a file in place at once, whole and on disk.
func replaceFile(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
