package oci

import (
	"bytes"
	"encoding/pem"
	"errors"
	"runtime/debug"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// AuthoritiesPath is the file in the image with [Authorities].
const AuthoritiesPath = "etc/ssl/certs/ca-certificates.crt"

// AuthoritiesModule is the module with [Authorities], as this program was built with it.
func AuthoritiesModule() (debug.Module, error) {
	const path = "golang.org/x/crypto/x509roots/fallback"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return *m, nil
			}
		}
	}
	return debug.Module{}, errors.New("this program does not know its version of " + path)
}

// Authorities are the certificate authorities that the image trusts, Mozilla's: those of
// a module, so that they do not depend on the machine.
func Authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot say what else must hold
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}
