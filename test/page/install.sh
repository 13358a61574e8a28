#!/bin/sh
# Installs the browser and npm where they are missing and apt-get is there; else
# says what is missing, and fails.
set -eu
missing=
command -v chromium >/dev/null || missing=chromium
command -v npm >/dev/null || missing="$missing npm"
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	apt-get -qq update >&2 || true # the lists that are there may do
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing >&2
	exit
fi
if [ -n "$missing" ]; then
	echo "the page's tests need packages that are missing; on Debian: apt-get install --no-install-recommends $missing" >&2
	exit 1
fi
