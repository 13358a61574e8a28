package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
)

// isShell reports whether the binary was called by the name sh. Conjur's authn-k8s does
// this in a container that requested a certificate.
func isShell(args []string) bool { return len(args) > 0 && filepath.Base(args[0]) == "sh" }

// receive stores the certificate, and does nothing else that a shell would do. It returns
// the exit status.
func receive(scripts []inject.Script) int {
	signal.Ignore(unix.SIGPIPE) // the caller may have disconnected
	status, err := inject.Receiver{
		Path:    cmp.Or(os.Getenv(config.InboxVariable), config.DefaultInbox),
		Scripts: scripts,
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
	}.Receive()
	if err != nil {
		fmt.Fprintf(os.Stderr, "syncer, called as sh to receive a certificate from Conjur: %v\n", err)
	}
	return status
}
