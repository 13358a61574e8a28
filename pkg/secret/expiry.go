package secret

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// mostCertificates bounds how many certificates of a value are looked at.
const mostCertificates = 256

var (
	beginCertificate = []byte("-----BEGIN CERTIFICATE-----")
	endCertificate   = []byte("-----END CERTIFICATE-----")
)

// Expires returns when the first of the certificates in a value expires; zero:
// it has none that can be read. They are found by the lines that PEM puts around
// them, whatever else is in the value, of which nothing is copied.
func Expires(value []byte) (first time.Time) {
	for range mostCertificates {
		begin := bytes.Index(value, beginCertificate)
		if begin < 0 {
			break
		}
		value = value[begin:]
		length := bytes.Index(value, endCertificate)
		if length < 0 {
			break
		}
		length += len(endCertificate)
		block, _ := pem.Decode(value[:length])
		value = value[length:]
		if block == nil {
			continue
		}
		crt, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || crt.NotAfter.Before(first)) {
			first = crt.NotAfter
		}
	}
	return first
}
