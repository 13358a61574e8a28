#!/bin/sh
# Installs what Pods need of the system where it is missing and apt-get is there;
# else says what that is, and fails.
set -eu
PATH=$PATH:/usr/sbin:/sbin # where Debian has some of it
if [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
	echo 'Pods need Linux, and root' >&2
	exit 1
fi

# missing prints the packages whose program is not there.
missing() {
	while read -r program package; do
		[ -x "$(command -v "$program")" ] || printf '%s ' "$package"
	done <<-END
		/bin/busybox busybox-static
		containerd containerd
		kubectl kubernetes-client
		/usr/lib/cni/ptp containernetworking-plugins
		nft nftables
		runc runc
	END
}

packages=$(missing)
if [ -n "$packages" ] && command -v apt-get >/dev/null; then
	apt-get -qq update >&2 || true # the lists that are there may do
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends --no-remove $packages >&2 || true
	packages=$(missing)
fi
if [ -n "$packages" ]; then
	echo "Pods need packages that are missing; on Debian: apt-get install --no-install-recommends $packages" >&2
	exit 1
fi
# An image of the tests has no shared libraries.
alone=$(mktemp -d)
trap 'rm -rf "$alone"' EXIT
cp /bin/busybox "$alone/busybox"
if ! chroot "$alone" /busybox true 2>/dev/null; then
	echo '/bin/busybox needs shared libraries; install a static one, on Debian: apt-get install busybox-static' >&2
	exit 1
fi
