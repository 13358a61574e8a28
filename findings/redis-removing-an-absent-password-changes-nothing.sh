#!/usr/bin/env bash
# Redis 7.0.15: ACL SETUSER changes nothing if one of its rules removes a password that the user
# does not have. The rules before it are not applied either. So a change can depend on what was
# read: a password or digest that must still be there is removed, and added again if it stays. The
# command then fails if somebody else has removed it meanwhile.
#
# Seen on 2026-11-28:
#   absent: (error) ERR Error in ACL SETUSER modifier '!<digest>': The password you are trying to remove from the user does not exist
#   passwords afterwards: 1
#   present: OK
#   passwords afterwards: 2
#
# The script fails if the behavior changes. It needs apt-get, dpkg and the libraries of Debian's
# redis-tools.
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill $server; wait $server || true; }; rm -rf "$dir"' EXIT
cd "$dir"
apt-get -qq -o APT::Sandbox::User= download redis-tools=5:7.0.15-1~deb12u7
dpkg -x redis-tools_*.deb .
ln -s usr/bin/redis-check-rdb redis-server # the same program; it acts by its name
./redis-server --port 0 --unixsocket "$dir/socket" --save '' > log &
server=$!
redis() { usr/bin/redis-cli -s "$dir/socket" --no-raw "$@" || true; }
for _ in $(seq 100); do [ "$(redis PING 2>&1)" = PONG ] && break; sleep 0.1; done
a=$(printf a | sha256sum | cut -d' ' -f1) b=$(printf b | sha256sum | cut -d' ' -f1) c=$(printf c | sha256sum | cut -d' ' -f1)
passwords() { redis ACL GETUSER shop | grep -cE '"[0-9a-f]{64}"'; }
redis ACL SETUSER shop "#$a" > created
got=$(
	echo "absent: $(redis ACL SETUSER shop "#$b" "!$c" | sed "s/$c/<digest>/")"
	echo "passwords afterwards: $(passwords)"
	echo "present: $(redis ACL SETUSER shop "#$b" "!$a" "#$a")"
	echo "passwords afterwards: $(passwords)"
)
want="absent: (error) ERR Error in ACL SETUSER modifier '!<digest>': The password you are trying to remove from the user does not exist
passwords afterwards: 1
present: OK
passwords afterwards: 2"
echo "$got"
[ "$got" = "$want" ] || { echo "the behavior has changed; expected:"; echo "$want"; exit 1; }
