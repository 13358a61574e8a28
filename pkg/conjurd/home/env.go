package home

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// address is the content of a folder's address file.
type address struct {
	Account string `json:"account"`
	URL     string `json:"url,omitempty"` // unknown before the first Serve
}

// writeAddress writes the address file for Env.
func (h *home) writeAddress(url string) error {
	text, err := json.Marshal(address{h.server.Account(), url})
	if err != nil {
		return err
	}
	return os.WriteFile(h.path(addressFile), text, 0o600)
}

// Setting is a variable of a client's environment.
type Setting struct{ Name, Value string }

// Env returns the environment in which a client logs in to the conjurd of a folder. The
// login is admin, a user, or a host with or without "host/". Its API key is among the
// settings. If url is empty, it is the address at which the folder was last served.
func Env(dir, login, url string) ([]Setting, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	a, err := readAddress(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s has no %s; prepare it with conjurd init, or serve it once", dir, addressFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, addressFile), err)
	}
	if a.URL = cmp.Or(url, a.URL); a.URL == "" {
		return nil, errors.New("the address is unknown, because conjurd has not served this folder yet; start it, or name the address with --url")
	}
	login, key, err := apiKey(dir, a.Account, login)
	return []Setting{
		{"CONJUR_APPLIANCE_URL", a.URL},
		{"CONJUR_ACCOUNT", a.Account},
		{"CONJUR_CERT_FILE", filepath.Join(dir, caFile)},
		{"CONJUR_AUTHN_LOGIN", login},
		{"CONJUR_AUTHN_API_KEY", key},
	}, err
}

// apiKey returns the complete login and its API key.
func apiKey(dir, account, login string) (string, string, error) {
	if login == "admin" {
		key, err := os.ReadFile(filepath.Join(dir, adminKeyFile))
		return login, strings.TrimSpace(string(key)), err
	}
	logins, err := knownLogins(dir, account)
	if err != nil {
		return "", "", err
	}
	for _, name := range []string{login, "host/" + login} {
		if key := logins[name]; key != "" {
			return name, key, nil
		}
	}
	return "", "", fmt.Errorf("the API key of %q is not known; known are %s, of those that --policy created", login, strings.Join(slices.Sorted(maps.Keys(logins)), ", "))
}

// Logins returns the logins whose API keys are in the folder of a conjurd.
func Logins(dir string) []string {
	a, err := readAddress(dir)
	if err != nil {
		return nil
	}
	logins, _ := knownLogins(dir, a.Account)
	return slices.Sorted(maps.Keys(logins))
}

func readAddress(dir string) (a address, err error) {
	text, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

// knownLogins returns the API keys of the users and hosts that --policy created, by
// login. The key of admin is elsewhere.
func knownLogins(dir, account string) (map[string]string, error) {
	keys, err := readAPIKeys(dir)
	if err != nil {
		return nil, err
	}
	logins := map[string]string{"admin": ""}
	for role, key := range keys {
		kind, id, _ := strings.Cut(strings.TrimPrefix(role, account+":"), ":")
		if kind == "host" {
			id = "host/" + id
		}
		logins[id] = key
	}
	return logins, nil
}

// readAPIKeys returns the API keys of the users and hosts that --policy created, by the
// complete id of the role.
func readAPIKeys(dir string) (map[string]string, error) {
	keys := map[string]string{}
	text, err := os.ReadFile(filepath.Join(dir, apiKeysFile))
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, apiKeysFile), err)
	}
	return keys, nil
}
