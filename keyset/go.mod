module github.com/secretsync/syncer/keyset

go 1.25.0

toolchain go1.26.10
