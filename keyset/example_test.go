package keyset_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/secretsync/syncer/keyset"
)

// folder stands for a mounted Secret with two keys.
func folder() string {
	dir, err := os.MkdirTemp("", "keyset")
	if err != nil {
		log.Fatal(err)
	}
	for name, letter := range map[string]string{"r1.key": "1", "r2.key.primary": "2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(letter, 32)), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	return dir
}

// A JWT names the key that signed it in its header, as kid.
func Example_jwt() {
	dir := folder()
	defer os.RemoveAll(dir)
	keys, err := keyset.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	mac := func(key keyset.Key, text string) string {
		h := hmac.New(sha256.New, key.Part("key"))
		h.Write([]byte(text))
		return encode(h.Sum(nil))
	}
	sign := func(claims string) string {
		key := keys.Primary()
		text := encode([]byte(`{"alg":"HS256","kid":"`+key.ID+`"}`)) + "." + encode([]byte(claims))
		return text + "." + mac(key, text)
	}
	verify := func(token string) bool {
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			return false
		}
		head, err := base64.RawURLEncoding.DecodeString(parts[0])
		var header struct{ Alg, Kid string }
		if err != nil || json.Unmarshal(head, &header) != nil || header.Alg != "HS256" {
			return false
		}
		key, ok := keys.ByID(header.Kid)
		return ok && hmac.Equal([]byte(parts[2]), []byte(mac(key, parts[0]+"."+parts[1])))
	}
	token := sign(`{"sub":"alice"}`)
	fmt.Println(keys.Primary().ID, verify(token), verify(token+"x"))
	// Output: r2 true false
}

// A column is sealed with the place that it belongs to, so that nobody can
// copy one customer's value to another.
func ExampleSet_Seal() {
	dir := folder()
	defer os.RemoveAll(dir)
	keys, err := keyset.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	sealed, err := keys.Seal([]byte("4111 1111 1111 1111"), []byte("customers/7/card"))
	if err != nil {
		log.Fatal(err)
	}
	plain, err := keys.Open(sealed, []byte("customers/7/card"))
	fmt.Println(sealed[:3], string(plain), err)
	_, err = keys.Open(sealed, []byte("customers/8/card"))
	fmt.Println(err)
	// Output:
	// r2: 4111 1111 1111 1111 <nil>
	// sealed text under key r2: it was altered, or belongs to something else
}
