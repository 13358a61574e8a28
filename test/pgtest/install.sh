#!/bin/sh
# Finds a PostgreSQL server, or installs Debian's. Where neither is possible it
# says so and fails: the tests that need PostgreSQL fail too, all others run.
set -eu
if [ -n "${SYNCER_POSTGRES:-}" ]; then
	[ -x "$SYNCER_POSTGRES/initdb" ] && exit 0
	echo "SYNCER_POSTGRES=$SYNCER_POSTGRES: there is no program initdb; name the folder with PostgreSQL's server programs" >&2
	exit 1
fi
if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo 'PostgreSQL is missing: install its server, or name the folder with its programs (initdb, postgres): SYNCER_POSTGRES=FOLDER' >&2
	exit 1
fi
# The package would begin a cluster of its own, which no test uses.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
apt-get -qq update >&2 || true # the lists that are there may do
DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends postgresql >&2
