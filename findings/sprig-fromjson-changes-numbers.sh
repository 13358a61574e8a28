#!/usr/bin/env bash
# sprig 3.3.0 (github.com/Masterminds/sprig), the template functions of Helm and of
# External Secrets: fromJson followed by toJson changes numbers of a valid document.
# Whole numbers above 2^53 get another value, and fromJson followed by printing writes an
# account number of eight digits in scientific notation. No error is reported.
#
# Seen on 2026-11-27 with Go 1.26:
#   id: 9007199254740992 instead of 9007199254740993
#   account: 1.2345678e+07 instead of 12345678
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
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

func main() {
	t := template.Must(template.New("").Funcs(sprig.TxtFuncMap()).Parse(
		"id: {{ (fromJson .).id | toJson }}\naccount: {{ (fromJson .).account }}\n"))
	if err := t.Execute(os.Stdout, `{"id": 9007199254740993, "account": 12345678}`); err != nil {
		panic(err)
	}
}
GO
go get github.com/Masterminds/sprig/v3@v3.3.0 2> get.log || { cat get.log >&2; exit 1; }
got=$(go run .)
want='id: 9007199254740992
account: 1.2345678e+07'
echo "$got"
[ "$got" = "$want" ] || { echo "the behavior has changed; expected:"; echo "$want"; exit 1; }
