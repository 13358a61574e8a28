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

# MariaDB. The package mariadb-server would start a service, so only its plugins are taken.
plugins=/usr/lib/mysql/plugin
has_mariadb() { { [ -x /usr/sbin/mariadbd ] || command -v mariadbd >/dev/null; } && [ -e $plugins/auth_ed25519.so ]; }
if ! has_mariadb; then
	can_install || { echo "MariaDB is missing: install its server and its plugins, such as the package mariadb-server" >&2; exit 1; }
	apt update || true # the lists that are there may do
	apt install --no-install-recommends mariadb-server-core mariadb-client-core
	home=$(mktemp -d)
	trap 'rm -r "$home"' EXIT
	chown _apt "$home" # which downloads
	(cd "$home" && apt download mariadb-server)
	dpkg -x "$home"/*.deb "$home/unpacked"
	mkdir -p $plugins
	for name in auth_ed25519 simple_password_check; do
		install -m 644 "$home/unpacked$plugins/$name.so" $plugins/
	done
fi

# RabbitMQ. Its packages would start a service and the daemon epmd, so they are only unpacked.
rabbitmq=${SYNCER_RABBITMQ:-${XDG_CACHE_HOME:-$HOME/.cache}/syncer-rabbitmq}
if ! ls "$rabbitmq"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server >/dev/null 2>&1; then
	if [ -n "${SYNCER_RABBITMQ:-}" ] || ! command -v apt-get >/dev/null; then
		echo 'RabbitMQ is missing: name the folder that has its usr/lib/rabbitmq and usr/lib/erlang: SYNCER_RABBITMQ=FOLDER' >&2
		exit 1
	fi
	mkdir -p "$(dirname "$rabbitmq")"
	unpacked=$(mktemp -d "$rabbitmq.XXXXXX")
	(
		cd "$unpacked"
		for part in base asn1 crypto eldap inets mnesia os-mon parsetools public-key runtime-tools ssl syntax-tools tools xmerl; do
			set -- "$@" "erlang-$part"
		done
		[ "$(id -u)" != 0 ] || apt-get -qq -o DPkg::Lock::Timeout=120 update || true # the lists that are there may do
		apt-get -qq -o APT::Sandbox::User= download rabbitmq-server "$@" >&2
		for package in *.deb; do
			dpkg -x "$package" .
			rm "$package"
		done
		sed -i "s|ROOTDIR=/usr/lib/erlang|ROOTDIR=$rabbitmq/usr/lib/erlang|" usr/lib/erlang/bin/erl
	)
	rm -rf "$rabbitmq"
	mv "$unpacked" "$rabbitmq"
fi
