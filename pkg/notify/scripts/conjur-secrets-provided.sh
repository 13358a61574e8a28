#!/bin/sh
# For a postStart hook of the sidecar's container: ends when the secrets have
# been provided, so that the containers after it are started then.

status="${1:-/conjur/status}"
until [ -e "$status/CONJUR_SECRETS_PROVIDED" ]; do
  sleep 1
done
