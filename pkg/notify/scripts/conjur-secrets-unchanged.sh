#!/bin/sh
# For a liveness or readiness probe of the application's container: fails once
# after the secrets were updated, so that the container is restarted.

updated="$(dirname "$0")/CONJUR_SECRETS_UPDATED"
if [ -e "$updated" ]; then
  rm -f "$updated"
  exit 1
fi
exit 0
