#!/bin/bash
# A bare Debian 12 as an archive, made once by debootstrap: images begin with it (tests/deploy), and
# the clone that .ci/bare_root.sh makes. Needs root.
# usage: debian_root.sh ARCHIVE
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
archive=$1
mkdir -p "$(dirname "$archive")"
exec 9>"$archive.lock"
flock 9
[ ! -e "$archive" ] || exit 0
folder=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
debootstrap --variant=minbase bookworm "$folder/root" >"$archive.log" 2>&1 ||
  { tail -n 5 "$archive.log" >&2; exit 1; }
# As Debian's own images have it: packages are not synced one by one, and have no translations.
echo force-unsafe-io >"$folder/root/etc/dpkg/dpkg.cfg.d/unsynced"
echo 'Acquire::Languages "none";' >"$folder/root/etc/apt/apt.conf.d/no-languages"
tar -C "$folder/root" -cf "$folder/archive.tar" \
  --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' --exclude='./var/cache/apt/archives/*.deb' .
mv "$folder/archive.tar" "$archive"
