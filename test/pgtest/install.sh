#!/bin/sh
# Finds a PostgreSQL server and a PgBouncer, or installs Debian's. Where neither is possible
# it says so and fails: the tests that need them fail too, all others run.
set -eu
has_postgres() {
	if [ -n "${SYNCER_POSTGRES:-}" ]; then
		[ -x "$SYNCER_POSTGRES/initdb" ] && return 0
		echo "SYNCER_POSTGRES=$SYNCER_POSTGRES: there is no program initdb; name the folder with PostgreSQL's server programs" >&2
		exit 1
	fi
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null
}
has_pgbouncer() { [ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 "$@" >&2; }

has_postgres && has_pgbouncer && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	has_postgres || echo 'PostgreSQL is missing: install its server, or name the folder with its programs (initdb, postgres): SYNCER_POSTGRES=FOLDER' >&2
	has_pgbouncer || echo 'PgBouncer is missing: install it, such as the package pgbouncer' >&2
	exit 1
fi
apt update || true # the lists that are there may do
if ! has_postgres; then
	# The package would begin a cluster of its own, which no test uses.
	mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	apt install --no-install-recommends postgresql
fi
if ! has_pgbouncer; then
	# The package would start a service, so only its program and libraries are taken.
	# shellcheck disable=SC2046 # one word for each library
	apt install --no-install-recommends $(apt-cache depends pgbouncer | sed -n 's/^ *Depends: \(lib[a-z0-9.+-]*\)$/\1/p')
	home=$(mktemp -d)
	trap 'rm -r "$home"' EXIT
	chown _apt "$home" # which downloads
	(cd "$home" && apt download pgbouncer)
	dpkg -x "$home"/*.deb "$home/unpacked"
	install -m 755 "$home/unpacked/usr/sbin/pgbouncer" /usr/local/bin/pgbouncer
fi
