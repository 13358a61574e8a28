#!/usr/bin/env bash
# MariaDB 10.11.19: a log-in that is in progress succeeds with the state that the user had when
# it began. So a user can log in after ACCOUNT LOCK, or with a password that was removed, until
# connect_timeout (10 s) has passed. The process list shows such a log-in under the user's name,
# with the command Connect.
#
# Seen on 2026-11-28:
#   locked: shop|Connect
#   answer after ACCOUNT LOCK: 00 (0: the log-in succeeded)
#
# The script fails if the behavior changes. It needs mariadb-server-core and python3.
set -euo pipefail
dir=$(mktemp -d)
chmod 755 "$dir"
as=()
if [ "$(id -u)" = 0 ]; then
	chown nobody "$dir"
	as=(setpriv --reuid=nobody --clear-groups)
fi
port=33999
"${as[@]}" mariadb-install-db --no-defaults --datadir="$dir/data" --auth-root-authentication-method=normal --skip-test-db > "$dir.log"
"${as[@]}" "$(command -v mariadbd || echo /usr/sbin/mariadbd)" --no-defaults --datadir="$dir/data" --socket="$dir/socket" --bind-address=127.0.0.1 --port=$port --skip-name-resolve 2>> "$dir.log" &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$dir" "$dir.log"' EXIT
sql() { mariadb --no-defaults -S "$dir/socket" -uroot -N -e "$1"; }
for _ in $(seq 100); do sql 'SELECT 1' > /dev/null 2>&1 && break; sleep 0.1; done
sql "CREATE USER shop@'%' IDENTIFIED BY 'pw'"
cat > "$dir/slow.py" <<'PY'
import hashlib, socket, struct, subprocess, sys
def packet(c):
    head = c.recv(4, socket.MSG_WAITALL)
    return c.recv(head[0] | head[1] << 8, socket.MSG_WAITALL)
sha = lambda b: hashlib.sha1(b).digest()
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
packet(c)
# Another plugin's name makes the server ask once more, and wait for the answer.
hello = struct.pack("<IIB23x", 0x200 | 0x8000 | 0x80000, 1 << 24, 45) + b"shop\0\1xanother_plugin\0"
c.sendall(struct.pack("<I", len(hello) | 1 << 24) + hello)
challenge = packet(c)[-21:-1]
def sql(text):
    return subprocess.check_output(["mariadb", "--no-defaults", "-S", sys.argv[2], "-uroot", "-N", "-e", text], text=True).strip()
sql("ALTER USER shop@'%' ACCOUNT LOCK")
print("locked:", sql("SELECT CONCAT_WS('|', USER, COMMAND) FROM information_schema.PROCESSLIST WHERE USER = 'shop'"))
once = sha(b"pw")
answer = bytes(a ^ b for a, b in zip(once, sha(challenge + sha(once))))
c.sendall(struct.pack("<I", 20 | 3 << 24) + answer)
print("answer after ACCOUNT LOCK: %02x (0: the log-in succeeded)" % packet(c)[0])
PY
got=$(python3 "$dir/slow.py" $port "$dir/socket")
want='locked: shop|Connect
answer after ACCOUNT LOCK: 00 (0: the log-in succeeded)'
echo "$got"
[ "$got" = "$want" ] || { echo "the behavior has changed; expected:"; echo "$want"; exit 1; }
