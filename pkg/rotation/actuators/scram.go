package actuators

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// verifier returns the value that PostgreSQL stores for a password, in PostgreSQL's form
// of RFC 5803. Nobody can log in with the verifier. The database stores a value of this
// form unchanged, whatever the value of password_encryption.
func verifier(password []byte) (string, error) {
	const rounds = 4096 // as PostgreSQL's own default
	for _, c := range password {
		if c < ' ' || c > '~' {
			return "", errors.New("the password has a character that is not printable ASCII, which clients may encode otherwise; generate another one")
		}
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, string(password), salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(keyed(salted, "Server Key"))), nil
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
