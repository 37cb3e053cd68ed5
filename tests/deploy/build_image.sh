#!/bin/bash
# Builds an image without an engine: Debian by debootstrap, once, then buildah with chroot isolation.
# Its file system is left in FOLDER/NAME, its configuration in FOLDER/NAME.json. Needs root.
# usage: build_image.sh FOLDER NAME CONTAINERFILE CONTEXT [BUILDAH'S OPTIONS...]
set -euo pipefail
folder=$1 name=$2 containerfile=$3 context=$4
export BUILDAH_ISOLATION=chroot PATH=$PATH:/usr/sbin:/sbin
# Mounts of its own, which end with it: buildah leaves those of its store.
[ -n "${OWN_MOUNTS:-}" ] || OWN_MOUNTS=1 exec unshare --mount --propagation private "$0" "$@"
# Layers as overlays where the folder can hold some: vfs copies all that is below for each.
mkdir -p "$folder"/probe/{lower,upper,work,merged}
driver=vfs
! mount -t overlay overlay "$folder/probe/merged" 2>/dev/null \
  -o "lowerdir=$folder/probe/lower,upperdir=$folder/probe/upper,workdir=$folder/probe/work" ||
  { driver=overlay && umount "$folder/probe/merged"; }
rm -rf --one-file-system "$folder/probe"
images() { buildah --storage-driver "$driver" --root "$folder/store" --runroot "$folder/run" "$@"; }

if ! images inspect localhost/debian:bookworm >/dev/null 2>&1; then
  mkdir -p "$folder/context"
  "$(dirname "$0")/../debian_root.sh" "$folder/../debian.tar"
  ln -f "$folder/../debian.tar" "$folder/context/debian.tar"
  printf 'FROM scratch\nADD debian.tar /\n' >"$folder/Containerfile.debian"
  images bud --quiet --tag localhost/debian:bookworm --file "$folder/Containerfile.debian" "$folder/context"
  rm -rf "$folder/context"
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
rm -rf --one-file-system "${folder:?}/$name"
cp -a --reflink=auto "$mounted" "$folder/$name"
images umount "$container" >/dev/null
images rm "$container" >/dev/null
