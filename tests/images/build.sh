#!/bin/bash
# Builds an image without an engine: Debian by debootstrap, once, then buildah with chroot isolation.
# Its file system is left in FOLDER/NAME, its configuration in FOLDER/NAME.json. Needs root.
# usage: build.sh FOLDER NAME CONTAINERFILE CONTEXT [BUILDAH'S OPTIONS...]
set -euo pipefail
folder=$1 name=$2 containerfile=$3 context=$4
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
export PATH=$PATH:/usr/sbin:/sbin
images() { buildah --root "$folder/store" --runroot "$folder/run" "$@"; }
mkdir -p "$folder/context"

if ! images inspect localhost/debian:bookworm >/dev/null 2>&1; then
  rm -rf "$folder/debian"
  debootstrap --variant=minbase bookworm "$folder/debian" >"$folder/debootstrap.log" 2>&1 ||
    { tail -n 5 "$folder/debootstrap.log" >&2; exit 1; }
  tar -C "$folder/debian" -cf "$folder/context/debian.tar" \
    --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' --exclude='./var/cache/apt/archives/*.deb' .
  printf 'FROM scratch\nADD debian.tar /\n' >"$folder/Containerfile.debian"
  images bud --quiet --tag localhost/debian:bookworm --file "$folder/Containerfile.debian" "$folder/context"
  rm -rf "$folder/debian" "$folder/context"
fi

# What a machine behind a proxy needs for pip: its authorities and its configuration, for the build.
volumes=()
for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf /etc/xdg/pip "${PIP_FIND_LINKS:-}" /opt/pypi /opt/pypi-more; do
  [ -n "$file" ] && [ -e "$file" ] && volumes+=(--volume "$file:$file:ro")
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
