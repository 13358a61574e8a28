// Command jwt signs and verifies tokens with the keys of a folder, and follows
// their rotation: POST /token returns a token that is valid for --life, POST
// /verify checks one, and GET /keys says which keys there are, for Syncer.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/secretsync/syncer/keyset"
)

func main() {
	folder := flag.String("keys", "/etc/keys", "the folder with the keys")
	address := flag.String("address", ":8080", "where to listen")
	life := flag.Duration("life", time.Hour, "how long a token is valid")
	flag.Parse()
	keys, err := keyset.Open(*folder)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("GET /keys", keys.Handler())
	http.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		expires := time.Now().Add(*life) // counts from before the key is chosen
		fmt.Fprint(w, sign(keys.Primary(), expires))
	})
	http.HandleFunc("POST /verify", func(w http.ResponseWriter, r *http.Request) {
		token, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
		if err == nil {
			err = verify(keys, string(token), time.Now())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	})
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}

// A token is header.claims.signature; the header names the key as kid.
type (
	header struct {
		Alg string `json:"alg"`
		Kid string `json:"kid"`
	}
	claims struct {
		Expires int64 `json:"exp"` // ms since 1970
	}
)

func sign(key keyset.Key, expires time.Time) string {
	text := encode(header{"HS256", key.ID}) + "." + encode(claims{expires.UnixMilli()})
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(key, text))
}

func verify(keys *keyset.Set, token string, now time.Time) error {
	text, signature, _ := cutLast(token)
	head, body, _ := strings.Cut(text, ".")
	var h header
	var c claims
	sum, err := base64.RawURLEncoding.DecodeString(signature)
	if err = errors.Join(err, decode(head, &h), decode(body, &c)); err != nil || h.Alg != "HS256" {
		return errors.New("it is not a token of ours")
	}
	if now.UnixMilli() > c.Expires { // then its key may be gone
		return errors.New("it has expired")
	}
	key, ok := keys.ByID(h.Kid)
	switch {
	case !ok:
		return fmt.Errorf("there is no key %q", h.Kid)
	case !hmac.Equal(sum, mac(key, text)):
		return errors.New("it was altered")
	}
	return nil
}

func mac(key keyset.Key, text string) []byte {
	h := hmac.New(sha256.New, key.Part("key"))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // none of ours fails
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decode(text string, v any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

func cutLast(token string) (before, after string, found bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return "", "", false
	}
	return token[:i], token[i+1:], true
}
