package secret

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// mostCertificates bounds the certificates of a value that are examined.
const mostCertificates = 256

var (
	beginCertificate = []byte("-----BEGIN CERTIFICATE-----")
	endCertificate   = []byte("-----END CERTIFICATE-----")
)

// Expires returns the earliest expiry of the certificates in a value. It returns
// zero if the value has no readable certificate. It finds certificates by their PEM
// lines, in any surrounding text, and copies nothing else of the value.
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
