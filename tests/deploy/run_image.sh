#!/bin/bash
# Runs a command in an image's file system as a container would: read-only, the command as process 1
# of its own, a network and a /tmp of its own, the home mounted, as a user that the image does not
# know. Needs root.
# usage: run_image.sh ROOT HOME USER VARIABLE=VALUE... -- COMMAND...
set -euo pipefail
export root=$1 home=$2 user=$3
shift 3
variables=()
while [ "$1" != -- ]; do variables+=("$1") && shift; done
shift
# shellcheck disable=SC2016
exec unshare --mount --pid --net --fork --kill-child --propagation private bash -c '
  set -euo pipefail
  mount --bind "$root" "$root"
  mount --bind "$home" "$root/srv/framesift"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for device in null zero random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mkdir -m 1777 "$root/dev/shm"
  # As an engine writes it: Horovod looks for this machine by its name.
  printf "127.0.0.1 localhost %s\n" "$(hostname)" >"$root/dev/hosts"
  touch "$root/etc/hosts"
  mount --bind "$root/dev/hosts" "$root/etc/hosts"
  mount -o remount,ro,bind "$root"
  ip link set lo up
  cd /
  exec env --ignore-environment "${@:1:$0}" \
    "$(command -v chroot)" --userspec="$user:0" --groups=0 "$root" "${@:$0+1}"
' "${#variables[@]}" "${variables[@]}" "$@"
