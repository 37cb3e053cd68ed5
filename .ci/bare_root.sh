#!/usr/bin/env bash
# A Debian with nothing but what README names, and in it a user, who is not root, with a clone of
# HEAD. Needs root and debootstrap. It goes into FOLDER/root, in mounts and processes of its own,
# which end with it, however it ends.
#
#   .ci/bare_root.sh FOLDER make             # the Debian, the packages, the user, the clone
#   .ci/bare_root.sh FOLDER run COMMAND...   # a command in the clone, as the user
#   .ci/bare_root.sh FOLDER remove
#
# Indexes of packages are the machine's: variables and files of pip, uv and apt are passed on, by
# mounts that only this script's processes see, and stay out of FOLDER. So are, to read only, the
# folders that A2D2_ROOT, CAMVID_ROOT, MPIJOB_CRD and MPIJOB_V1ALPHA2_CRD name, and time zones for TZ.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
usage() { sed -n 's/^#   //p' "$0" >&2; exit 2; }
(($# >= 2)) || usage
repository=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd) action=$2
shift 2
export root=$folder/root
# What README asks for, by Debian's names.
packages=(python3 python3-dev python3-venv git make g++)
user=guest
home=/home/$user

# What a command inherits: only what says where packages come from, and where the tests' data is.
authorities=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
variables=(HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while IFS= read -r -d '' variable; do
  case ${variable%%=*} in
    HTTP_PROXY | HTTPS_PROXY | NO_PROXY | http_proxy | https_proxy | no_proxy | PIP_* | UV_*INDEX* | UV_HTTP_TIMEOUT | \
      TZ | PYTEST_ADDOPTS | A2D2_ROOT | CAMVID_ROOT | MPIJOB_CRD | MPIJOB_V1ALPHA2_CRD) variables+=("$variable") ;;
  esac
done < <(env -0)
[ ! -e "$authorities" ] || variables+=(SSL_CERT_FILE=/run/authorities.crt PIP_CERT=/run/authorities.crt REQUESTS_CA_BUNDLE=/run/authorities.crt)

# mounts: "FROM TO" of each file or folder that is passed on.
mounts() {
  echo "$authorities /run/authorities.crt"
  echo "/etc/resolv.conf /etc/resolv.conf"
  echo "/etc/hosts /etc/hosts"
  echo "/etc/pip.conf /etc/pip.conf"
  echo "/etc/xdg/pip /etc/xdg/pip"
  echo "$HOME/.config/pip $home/.config/pip"
  echo "$HOME/.config/uv $home/.config/uv"
  echo "/etc/uv /etc/uv"
  # Folders that pip's settings name, as an index's or as one of wheels.
  local named
  for named in $(python3 -m pip config list 2>/dev/null | grep -oE "(file://)?/[^ '\"]+" | sort -u) ${PIP_FIND_LINKS:-}; do
    named=${named#file://} && named=${named%/simple}
    [ ! -d "$named" ] || echo "$named $named"
  done
  for named in "${A2D2_ROOT:-}" "${CAMVID_ROOT:-}" "${MPIJOB_CRD:-}" "${MPIJOB_V1ALPHA2_CRD:-}"; do
    [ -z "$named" ] || echo "$named $named"
  done
  [ -z "${TZ:-}" ] || echo "/usr/share/zoneinfo /usr/share/zoneinfo"
  # apt's proxies.
  for named in $(grep -lrsE 'Acquire::https?' /etc/apt/apt.conf /etc/apt/apt.conf.d); do echo "$named $named"; done
}

# inside USER COMMAND...: a command in the clone, or for root in /, which sees the mounts.
inside() {
  local as=$1 at=$home/framesift
  [ "$as" != root ] || at=/
  shift
  # shellcheck disable=SC2016
  mounts="$(mounts | sort -u)" as=$as at=$at exec setpriv --pdeathsig KILL \
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
    set -euo pipefail
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    while read -r from to; do
      [ -e "$from" ] || continue
      if [ -d "$from" ]; then mkdir -p "$root$to"; else mkdir -p "$root$(dirname "$to")" && touch "$root$to"; fi
      mount --bind "$from" "$root$to"
      mount -o remount,ro,bind "$root$to"
    done <<<"$mounts"
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for device in null zero full random urandom tty; do
      touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx" && ln -s /proc/self/fd "$root/dev/fd"
    # Root stays process 1: what becomes another user outlives the death of its parent.
    code=0
    env --ignore-environment "$@" || code=$?
    exit "$code"
  ' bash "${variables[@]}" "$(command -v chroot)" --userspec="$as:$as" "$root" \
    /bin/bash -c 'cd "$1" && shift && exec "$@"' bash "$at" "$@"
}

case $action in
  make)
    began=$SECONDS
    "$repository/tests/debian_root.sh" "${FRAMESIFT_TEST_DEBIAN:-$HOME/.cache/framesift-tests/debian.tar}"
    rm -rf --one-file-system "$root"
    mkdir "$root"
    tar -C "$root" -xf "${FRAMESIFT_TEST_DEBIAN:-$HOME/.cache/framesift-tests/debian.tar}"
    (inside root sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"' \
      sh "${packages[@]}") >"$folder/packages.log" 2>&1 || { tail -n 20 "$folder/packages.log" >&2; exit 1; }
    chroot "$root" useradd --create-home --shell /bin/bash "$user"
    git clone --quiet --no-hardlinks "$repository" "$root$home/framesift"
    chroot "$root" chown -R "$user:$user" "$home"
    echo "Debian with ${packages[*]}, and a clone: $((SECONDS - began)) s, $(du -sm --one-file-system "$root" | cut -f1) MB"
    ;;
  run)
    (($#)) || usage
    began=$SECONDS code=0
    (inside "$user" "$@") || code=$?
    echo "as $user in a bare Debian: $*: $((SECONDS - began)) s, exit code $code; $(du -sm --one-file-system "$root" | cut -f1) MB on the disk"
    exit "$code"
    ;;
  remove) rm -rf --one-file-system "$root" "$folder/packages.log" ;;
  *) usage ;;
esac
