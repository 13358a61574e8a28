package conjurd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// A server inside a program: on loopback, with a certificate of its own.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server, err := conjurd.Open(conjurd.Options{Account: "demo"})
	if err != nil {
		panic(err)
	}
	defer server.Close()

	roles, err := server.LoadPolicy(ctx, conjurd.Add, "root", strings.NewReader(`
- !variable password
- !host web
- !permit { role: !host web, privileges: [ read, execute ], resource: !variable password }
`))
	if err != nil {
		panic(err)
	}
	fmt.Println(roles[0].ID, "logs in with a key of", len(roles[0].APIKey), "letters")
	if err := server.Set(ctx, "password", []byte("s3cret")); err != nil {
		panic(err)
	}

	ca, err := conjurd.NewCA() // clients must trust ca.Cert
	if err != nil {
		panic(err)
	}
	cert, err := ca.Issue()
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener, &tls.Config{Certificates: []tls.Certificate{cert}}) }()

	stop() // at the program's end
	fmt.Println("stopped:", <-done)
	// Output:
	// demo:host:web logs in with a key of 56 letters
	// stopped: <nil>
}
