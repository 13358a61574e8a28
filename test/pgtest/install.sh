#!/bin/sh
# Installs PostgreSQL where it is missing, apt-get is there and we are root; else
# the tests that need it fail and name the package.
set -eu
if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	# The package would begin a cluster of its own, which no test uses.
	mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	apt-get -qq update >&2 || true # the lists that are there may do
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends postgresql >&2
fi
