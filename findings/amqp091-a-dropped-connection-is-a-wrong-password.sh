#!/usr/bin/env bash
# amqp091-go 1.16.0 (github.com/rabbitmq/amqp091-go), the client of RabbitMQ for Go: a
# server that closes the socket during the login, as one that stops, is reported as
# "username or password not allowed". The client does not declare the capability
# authentication_failure_close, so RabbitMQ answers a wrong password likewise, after 3 s.
# A caller cannot distinguish the two. Syncer therefore logs in without this module.
#
# Seen on 2026-11-28 with Go 1.26:
#   true Exception (403) Reason: "username or password not allowed"
#
# The script fails if the behavior changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'MOD'
module finding

go 1.25.0
MOD
cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		buf := make([]byte, 4096)
		conn.Read(buf) // the protocol's header
		// connection.start 0-9, without properties, PLAIN, en_US
		conn.Write([]byte("\x01\x00\x00\x00\x00\x00\x1c\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US\xce"))
		conn.Read(buf) // connection.start-ok
		conn.Close()   // the server stops
	}()
	_, err = amqp.Dial("amqp://shop:right@" + l.Addr().String() + "/")
	fmt.Println(errors.Is(err, amqp.ErrCredentials), err)
}
GO
go get github.com/rabbitmq/amqp091-go@v1.16.0 2> get.log || { cat get.log >&2; exit 1; }
got=$(go run .)
want='true Exception (403) Reason: "username or password not allowed"'
echo "$got"
[ "$got" = "$want" ] || { echo "the behavior has changed; expected:"; echo "$want"; exit 1; }
