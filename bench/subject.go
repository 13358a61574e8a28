package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// subject is a program to measure.
type subject struct {
	name  string
	files bool // it writes files
	// command creates the process for a world without starting it.
	command func(*world) (*exec.Cmd, error)
}

func syncer(path string) subject {
	return subject{name: "syncer", files: true, command: func(w *world) (*exec.Cmd, error) {
		cmd := exec.Command(path,
			"--annotations", w.path("podinfo", "annotations"), "--secrets-dir", w.path("secrets"),
			"--templates-dir", w.path("templates"), "--status-dir", w.path("status"))
		cmd.Env = w.env(w.path(jwtFile))
		return cmd, nil
	}}
}

func bareClient(self string) subject {
	return subject{name: "bare client", command: func(w *world) (*exec.Cmd, error) {
		job := bareJob{URL: w.served.URL, AuthnURL: w.authnURL(), Account: account, CA: w.served.CA, TokenFile: w.path(jwtFile)}
		for i := range w.profile.count() {
			job.Variables = append(job.Variables, w.profile.variable(i))
		}
		text, err := json.Marshal(job)
		cmd := exec.Command(self, bareClientFlag)
		cmd.Env = []string{} // inherits no environment
		cmd.Stdin = bytes.NewReader(text)
		return cmd, err
	}}
}

// incumbent runs the Secrets Provider. Its paths are fixed, so the world's folder
// is its root.
func incumbent(path string) subject {
	return subject{name: "incumbent", files: true, command: func(w *world) (*exec.Cmd, error) {
		if os.Geteuid() != 0 {
			return nil, errors.New("-incumbent needs root, to give the process another root folder")
		}
		const inside = "/provider"
		if err := copyFile(filepath.Join(w.dir, inside), path); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(w.dir, "tmp"), 0o777); err != nil {
			return nil, err
		}
		cmd := exec.Command(inside)
		cmd.Env = w.env("/conjur/" + jwtFile)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: w.dir}
		return cmd, nil
	}}
}

// env returns the environment from a Pod's manifest.
func (w *world) env(tokenPath string) []string {
	return []string{
		"CONJUR_APPLIANCE_URL=" + w.served.URL, "CONJUR_AUTHN_URL=" + w.authnURL(), "CONJUR_ACCOUNT=" + account,
		"CONJUR_SSL_CERTIFICATE=" + string(w.served.CA), "JWT_TOKEN_PATH=" + tokenPath,
		"MY_POD_NAMESPACE=bench", "MY_POD_NAME=bench", "MY_NODE_NAME=" + nodeName(0),
	}
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
