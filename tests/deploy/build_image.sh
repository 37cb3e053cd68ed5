#!/bin/bash
# Builds an image without an engine: Debian by debootstrap, once, then buildah with chroot isolation.
# Its file system is left in FOLDER/NAME, its configuration in FOLDER/NAME.json. Needs root.
# usage: build_image.sh FOLDER NAME CONTAINERFILE CONTEXT [BUILDAH'S OPTIONS...]
set -euo pipefail
folder=$1 name=$2 containerfile=$3 context=$4
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
export PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$folder"
images() { buildah --root "$folder/store" --runroot "$folder/run" "$@"; }

if ! images inspect localhost/debian:bookworm >/dev/null 2>&1; then
  rm -rf "$folder/debian"
  mkdir -p "$folder/context"
  debootstrap --variant=minbase bookworm "$folder/debian" >"$folder/debootstrap.log" 2>&1 ||
    { tail -n 5 "$folder/debootstrap.log" >&2; exit 1; }
  # As Debian's own images have it: packages are not synced one by one, and have no translations.
  echo force-unsafe-io >"$folder/debian/etc/dpkg/dpkg.cfg.d/unsynced"
  echo 'Acquire::Languages "none";' >"$folder/debian/etc/apt/apt.conf.d/no-languages"
  tar -C "$folder/debian" -cf "$folder/context/debian.tar" \
    --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' --exclude='./var/cache/apt/archives/*.deb' .
  printf 'FROM scratch\nADD debian.tar /\n' >"$folder/Containerfile.debian"
  images bud --quiet --tag localhost/debian:bookworm --file "$folder/Containerfile.debian" "$folder/context"
  rm -rf "$folder/debian" "$folder/context"
fi

# What pip needs on a machine behind a proxy: its authorities and its configuration, for the build.
# By other names: a package that is installed writes the usual one.
volumes=()
mounted() { [ ! -e "$1" ] || volumes+=(--volume "$1:$2:ro"); }
printf '[global]\ncert = /run/authorities.crt\n' >"$folder/pip.conf"
mounted "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" /run/authorities.crt
mounted "$folder/pip.conf" /etc/pip.conf
mounted /etc/xdg/pip /etc/xdg/pip
mounted "${HOME}/.config/pip" /root/.config/pip
# Folders that it names, as an index's or as one of wheels.
for named in $(python3 -m pip config list 2>/dev/null | grep -oE '(file://)?/[^ '"']+" | sort -u); do
  named=${named#file://} && named=${named%/simple}
  [ ! -d "$named" ] || mounted "$named" "$named"
done
images bud --format docker --layers --tag "$name" --build-arg BASE=localhost/debian:bookworm \
  "${volumes[@]}" "${@:5}" --file "$containerfile" "$context"
images inspect --type image "$name" >"$folder/$name.json"
container=$(images from --pull-never "$name")
mounted=$(images mount "$container")
rm -rf "${folder:?}/$name"
cp -a --reflink=auto "$mounted" "$folder/$name"
images umount "$container" >/dev/null
images rm "$container" >/dev/null
