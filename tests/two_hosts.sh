#!/bin/bash
# Two machines in all but hardware: a network namespace each, with a name, an address and an sshd of
# its own, on a bridge. Arguments: up or down, a folder for keys, a prefix of at most four letters.
# Needs root, iproute2 and openssh-server.
set -eu
what=$1 folder=$2 prefix=$3
if [ "$what" = down ]; then
  for i in 1 2; do
    for pid in $(ip netns pids "$prefix$i" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns del "$prefix$i" 2>/dev/null || true
    ip link del "${prefix}v$i" 2>/dev/null || true
    rm -rf "/etc/netns/$prefix$i"
  done
  ip link del "${prefix}br" 2>/dev/null || true
  exit 0
fi
subnet=10.78.$(( $$ % 200 + 20 ))
mkdir -p "$folder" /run/sshd
cd "$folder"
ssh-keygen -q -t ed25519 -N '' -f id
ssh-keygen -q -t ed25519 -N '' -f host_key
cp id.pub authorized_keys
ip link add "${prefix}br" type bridge
ip addr add "$subnet.254/24" dev "${prefix}br"
ip link set "${prefix}br" up
: > ssh_config
for i in 1 2; do
  # ip netns exec shows it as /etc/hosts: machines know their names.
  mkdir -p "/etc/netns/$prefix$i"
  printf '127.0.0.1 localhost\n%s.1 %s1\n%s.2 %s2\n' "$subnet" "$prefix" "$subnet" "$prefix" \
    > "/etc/netns/$prefix$i/hosts"
  ip netns add "$prefix$i"
  ip link add "${prefix}v$i" type veth peer name eth0 netns "$prefix$i"
  ip link set "${prefix}v$i" master "${prefix}br" up
  ip -n "$prefix$i" addr add "$subnet.$i/24" dev eth0
  ip -n "$prefix$i" link set eth0 up
  ip -n "$prefix$i" link set lo up
  # SHLVL: bash reads ~/.bashrc for a command of sshd unless it is told that it is no first shell, and
  # what this machine's file writes would stand in the logs of jobs.
  cat > "sshd$i.conf" <<C
Port 22
SetEnv SHLVL=1
ListenAddress $subnet.$i
HostKey $folder/host_key
PidFile $folder/sshd$i.pid
AuthorizedKeysFile $folder/authorized_keys
StrictModes no
UsePAM no
PermitRootLogin yes
MaxStartups 100
C
  ip netns exec "$prefix$i" unshare --uts sh -c "hostname $prefix$i; exec /usr/sbin/sshd -f $folder/sshd$i.conf"
  printf 'Host %s\n HostName %s\n' "$prefix$i" "$subnet.$i" >> ssh_config
done
printf 'Host *\n IdentityFile %s/id\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n' \
  "$folder" >> ssh_config
