#!/bin/sh
# For a postStart hook of the sidecar's container: ends when the secrets have
# been provided, so that the containers after it are started then. It gives up
# after two minutes, as no container with such a hook can be stopped meanwhile,
# and says what is missing.

status="${1:-/conjur/status}"
missing="$status/CONJUR_SECRETS_MISSING"
boot="$status/.boot" # of the machine's start since which they have been provided
left=120
until [ -e "$status/CONJUR_SECRETS_PROVIDED" ] &&
  { [ ! -e "$boot" ] || [ "$(cat "$boot")" = "$(cat /proc/sys/kernel/random/boot_id)" ]; }; do
  if [ "$left" -eq 0 ]; then
    echo "the secrets have not been provided within 2 minutes; missing:" >&2
    if [ -f "$missing" ]; then cat "$missing" >&2; else echo "see the log of Syncer" >&2; fi
    exit 1
  fi
  left=$((left - 1))
  sleep 1
done
