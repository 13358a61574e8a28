package world

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Leak finds a canary, or its base64 or hexadecimal form, in a text.
func Leak(text string, canaries ...string) string {
	for _, canary := range canaries {
		for _, form := range forms(canary) {
			if at := strings.Index(text, form); at >= 0 {
				return text[at:min(at+len(form)+10, len(text))]
			}
		}
	}
	return ""
}

func forms(canary string) []string {
	forms := []string{canary, hex.EncodeToString([]byte(canary))}
	for before := range 3 { // bytes that share the encoding's groups of three
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("?", before) + canary))
		first, end := (8*before+5)/6, 8*(before+len(canary))/6
		forms = append(forms, encoded[first:end])
	}
	return forms
}
