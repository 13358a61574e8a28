#!/usr/bin/env bash
# RabbitMQ 3.10.8: /api/connections of the management API lists a connection only with the next
# statistics. How often they are collected is not collect_statistics_interval, but the shortest
# interval of management.sample_retention_policies.basic, which is 5 s by default. Until then a
# connection that is in use is missing. /api/connections/username/USER lists it at once, because
# it reads another table. So only the list of a user can show that the user has no connection.
#
# Seen on 2026-11-28, with an interval of an hour for the policy and of 1 s for the other setting:
#   of the user: 1
#   of all users, after 10 s: 0
#
# The script fails if the behavior changes. It needs apt-get, dpkg and python3, and takes the
# ports 33995 to 33998 of loopback.
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill -KILL -- -$server; wait $server 2>/dev/null || true; }; rm -rf "$dir"' EXIT
cd "$dir"
for part in base asn1 crypto eldap inets mnesia os-mon parsetools public-key runtime-tools ssl syntax-tools tools xmerl; do
	set -- "$@" "erlang-$part"
done
apt-get -qq -o APT::Sandbox::User= download rabbitmq-server=3.10.8-1.1+deb12u1 "$@"
for package in *.deb; do dpkg -x "$package" .; done
sed -i "s|ROOTDIR=/usr/lib/erlang|ROOTDIR=$dir/usr/lib/erlang|" usr/lib/erlang/bin/erl
cat > rabbitmq.conf <<'CONF'
listeners.tcp.1 = 127.0.0.1:33995
management.tcp.ip = 127.0.0.1
management.tcp.port = 33996
collect_statistics_interval = 1000
management.sample_retention_policies.basic.hour = 3600
management.sample_retention_policies.global.minute = 5
management.sample_retention_policies.detailed.minute = 5
CONF
echo '[rabbitmq_management].' > plugins
set -m # the server is a process group
env -i PATH="$dir/usr/lib/erlang/bin:$PATH" HOME="$dir" ERL_EPMD_PORT=33997 ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_DIST_PORT=33998 \
	RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_CONFIG_FILE="$dir/rabbitmq" RABBITMQ_CONF_ENV_FILE="$dir/none" \
	RABBITMQ_ENABLED_PLUGINS_FILE="$dir/plugins" RABBITMQ_MNESIA_BASE="$dir/data" RABBITMQ_LOG_BASE="$dir" \
	RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}' \
	bash -c 'epmd -address 127.0.0.1 & exec "$0"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server -noinput' "$dir" > log 2>&1 < /dev/null &
server=$!
set +m
cat > lists.py <<'PY'
import base64, json, socket, struct, time, urllib.request
def api(path):
    request = urllib.request.Request("http://127.0.0.1:33996/api/" + path, headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()})
    return json.load(urllib.request.urlopen(request))
for _ in range(600): # until it runs
    try:
        api("whoami")
        c = socket.create_connection(("127.0.0.1", 33995))
        break
    except OSError:
        time.sleep(0.2)
def read(): # a frame's class, method and arguments
    kind, channel, size = struct.unpack(">BHI", c.recv(7, socket.MSG_WAITALL))
    return c.recv(size + 1, socket.MSG_WAITALL)[:-1]
def write(method, args):
    c.sendall(struct.pack(">BHIHH", 1, 0, len(args) + 4, 10, method) + args + b"\xce")
c.sendall(b"AMQP\0\0\x09\x01")
read() # start
write(11, b"\0\0\0\0\x05PLAIN\0\0\0\x0c\0guest\0guest\x05en_US")
write(31, read()[4:]) # tune
write(40, b"\x01/\0\0") # open
assert read()[:4] == struct.pack(">HH", 10, 41)
for _ in range(50):
    if own := len(api("connections/username/guest")):
        break
    time.sleep(0.1)
print("of the user:", own)
time.sleep(10)
print("of all users, after 10 s:", len(api("connections")))
PY
got=$(python3 lists.py) || { cat log >&2; exit 1; }
want='of the user: 1
of all users, after 10 s: 0'
echo "$got"
[ "$got" = "$want" ] || { echo "the behavior has changed; expected:"; echo "$want"; exit 1; }
