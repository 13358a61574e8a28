package inject

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/url"
	"slices"
)

// Script identifies a script with which Conjur writes a certificate. Prefix and
// Suffix are the SHA-256, in hex, of the text before the certificate's first line
// and after its last. Path and mode in the script are constant, so the Receiver
// need not interpret the text.
type Script struct{ Prefix, Suffix string }

// Scripts lists the scripts of conjurd and of all releases of Conjur since 1.10.
// Earlier releases run tar instead.
func Scripts() []Script {
	const (
		prefix110     = "2cb8dd4d0b87a52ea485c57e103f62b345d69ea5e8f89ad4dad4e7b50f85a88d"
		suffix110     = "5911a82c22af2ee7a165824d00bb4612c08823484c2b820926f1bb2598a307b1"
		prefix111     = "847caca206686bf7990fc662dc8a0e516a95553be224e17a417170b61fbe49d6" // also of 1.24
		suffix111     = "a671e930a010a073e6d7ec760f7e1087cdfe23783669143434b5acbd1350b54a"
		suffix124     = "982f3084a79038c0d7f57c67ec075e144cc93d0edf091965cec9cd9493fa601f"
		prefixConjurd = "671dcb4df4217d986c57f5ed66eebeade6a325949ee26e2b6960dfab0877bbea"
		suffixConjurd = "ad0d595fa4130b62e8ca4d192326933c8022b6eec59d124a11fb8d5b61c82c9d"
	)
	return []Script{{prefix110, suffix110}, {prefix111, suffix111}, {prefix111, suffix124}, {prefixConjurd, suffixConjurd}}
}

// certificate is the certificate in a script.
type certificate struct {
	pem []byte
	key []byte // in PKIX form
}

var (
	errUnknownScript = errors.New("the received script is not one with which Conjur writes a certificate")
	errNoCertificate = errors.New("the received script contains no certificate of a workload")
)

// parse extracts the certificate from a known script.
func parse(text []byte, scripts []Script) (certificate, error) {
	begin := bytes.Index(text, []byte("-----BEGIN CERTIFICATE-----\n"))
	last := []byte("-----END CERTIFICATE-----\n")
	end := bytes.Index(text, last) + len(last)
	if begin < 0 || end < begin+len(last) {
		return certificate{}, errUnknownScript
	}
	if !slices.Contains(scripts, Script{digest(text[:begin]), digest(text[end:])}) {
		return certificate{}, errUnknownScript
	}
	c := certificate{pem: text[begin:end]}
	block, _ := pem.Decode(c.pem)
	// Encoding it again must give the same text, which proves that the text
	// contains nothing else.
	if block == nil || len(block.Headers) > 0 || !bytes.Equal(pem.EncodeToMemory(block), c.pem) {
		return certificate{}, errNoCertificate
	}
	x, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !slices.ContainsFunc(x.URIs, func(u *url.URL) bool { return u.Scheme == "spiffe" }) {
		return certificate{}, errNoCertificate
	}
	c.key = x.RawSubjectPublicKeyInfo
	return c, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
