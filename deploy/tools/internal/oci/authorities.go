package oci

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// mozillaRoots are the certificate authorities that the image trusts: those of a
// module, so that they do not depend on the machine.
func mozillaRoots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot say what else must hold
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}
