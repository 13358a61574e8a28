#!/bin/sh
# For a liveness or readiness probe of the application's container: fails once
# after the secrets were updated, so that the container is restarted.

status="$(dirname "$0")"
updated="$status/CONJUR_SECRETS_UPDATED"
[ -e "$updated" ] || exit 0
rm -f "$updated" 2>/dev/null && exit 1

# The folder is sticky, as a volume in memory is, and the file another user's:
# a file of the own user's with the same timestamp marks the update as seen.
seen="$status/.CONJUR_SECRETS_UPDATED-seen-by-$(id -u)"
if [ -e "$seen" ] && ! [ "$updated" -nt "$seen" ]; then
  exit 0
fi
next="$(mktemp "$status/.syncer-XXXXXX")" || exit 1
touch -r "$updated" "$next" && mv -f "$next" "$seen"
exit 1
