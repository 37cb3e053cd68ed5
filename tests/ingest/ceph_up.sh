#!/bin/bash
# A real Ceph with its S3 gateway in one folder, without systemd: one monitor, manager, OSD and
# radosgw. Debian packages: ceph-mon ceph-osd ceph-mgr radosgw ceph-common.
# usage: ceph_up.sh FOLDER S3_PORT MONITOR_PORT ACCESS_KEY SECRET_KEY
set -euo pipefail
folder=$1 port=$2 monitor=$3 access=$4 secret=$5
mkdir -p "$folder"/{mon,osd,rgw,run,log,mgr}
cd "$folder"
export CEPH_CONF=$folder/ceph.conf
cluster=$(cat /proc/sys/kernel/random/uuid) osd=$(cat /proc/sys/kernel/random/uuid)
cat > ceph.conf <<END
[global]
fsid = $cluster
mon_initial_members = a
mon_host = [v2:127.0.0.1:$((monitor + 1)),v1:127.0.0.1:$monitor]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
keyring = $folder/keyring
run_dir = $folder/run
admin_socket = $folder/run/\$name.asok
pid_file = $folder/run/\$name.pid
log_file = $folder/log/\$name.log
crash_dir = $folder/run
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
osd_crush_chooseleaf_type = 0
[mon.a]
host = $(hostname -s)
mon_data = $folder/mon
mon_data_avail_warn = 1
mon_data_avail_crit = 1
[mgr.x]
mgr_data = $folder/mgr
mgr_initial_modules =
[osd]
osd_data = $folder/osd
osd_objectstore = bluestore
bluestore_block_size = ${CEPH_BYTES:-8589934592}
osd_memory_target = 939524096
[client.rgw]
rgw_frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw_data = $folder/rgw
rgw_enable_usage_log = false
rgw_enable_ops_log = false
END
ceph-authtool --create-keyring keyring --gen-key -n mon. --cap mon 'allow *'
ceph-authtool keyring --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' \
  --cap mgr 'allow *' --cap mds 'allow *'
ceph-authtool keyring --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *' \
  --cap mgr 'allow profile osd'
ceph-authtool keyring --gen-key -n mgr.x --cap mon 'allow profile mgr' --cap osd 'allow *' \
  --cap mds 'allow *'
ceph-authtool keyring --gen-key -n client.rgw --cap mon 'allow rw' --cap osd 'allow rwx' \
  --cap mgr 'allow rw'
monmaptool --create --addv a "[v2:127.0.0.1:$((monitor + 1)),v1:127.0.0.1:$monitor]" \
  --fsid "$cluster" monmap
ceph-mon --mkfs -i a --monmap monmap --keyring keyring
ceph-mon -i a
ceph --connect-timeout 120 osd new "$osd"
ceph-osd -i 0 --mkfs --osd-uuid "$osd"
ceph-osd -i 0
ceph-mgr -i x
for _ in $(seq 600); do
  ceph osd stat 2>/dev/null | grep -q "1 up" && break
  sleep .2
done
radosgw -n client.rgw
for _ in $(seq 1500); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  sleep .2
done
radosgw-admin user create --uid=framesift --display-name=framesift \
  --access-key="$access" --secret="$secret"
