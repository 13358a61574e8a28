#!/bin/sh
# Finds the servers whose logins the tests rotate, or installs Debian's. Where that is not
# possible it says so and fails: the tests that need a server fail too, all others run.
set -eu
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 "$@" >&2; }
can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# Redis. The package redis-server would start a service. The program itself is in
# redis-tools, as redis-check-rdb.
has_redis() { command -v redis-cli && { command -v redis-server || command -v valkey-server || command -v redis-check-rdb; }; }
if ! has_redis >/dev/null; then
	can_install || { echo 'Redis is missing: install its server and redis-cli, such as the packages redis-server and redis-tools' >&2; exit 1; }
	apt update || true # the lists that are there may do
	apt install --no-install-recommends redis-tools
fi
