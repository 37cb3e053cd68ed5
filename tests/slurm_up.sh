#!/bin/bash
# A real Slurm in one folder, without systemd: munge, the controller and some nodes of this machine.
# Debian packages: slurm-wlm munge slurm-wlm-basic-plugins. Needs root; every user may enter FOLDER.
# usage: slurm_up.sh FOLDER NODES CPUS_PER_NODE CONTROLLER_PORT
set -euo pipefail
folder=$1 nodes=$2 cpus=$3 port=$4
mkdir -p "$folder"/{log,run,munge,state/ctld}
cd "$folder"
dd if=/dev/urandom of=munge.key bs=1 count=1024 status=none
chmod 600 munge.key
chown munge:munge munge.key munge
chmod 755 munge
setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged --force \
  --key-file="$folder/munge.key" --socket="$folder/munge/munge.sock" \
  --pid-file="$folder/munge/munged.pid" --log-file="$folder/munge/munged.log" \
  --seed-file="$folder/munge/munged.seed" --num-threads=2
host=$(hostname -s)
{
  cat <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/munge.sock
CredType=cred/munge
SlurmctldPort=$port
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmdSpoolDir=$folder/state/slurmd.%n
StateSaveLocation=$folder/state/ctld
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SlurmdParameters=config_overrides
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=2
PropagateResourceLimits=NONE
END
  for i in $(seq "$nodes"); do
    mkdir -p "state/slurmd.node$i"
    echo "NodeName=node$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=$cpus"
  done
  echo "PartitionName=all Nodes=node[1-$nodes] Default=YES MaxTime=INFINITE State=UP"
} > slurm.conf
echo "CgroupPlugin=cgroup/v1" > cgroup.conf
export SLURM_CONF=$folder/slurm.conf
/usr/sbin/slurmctld -c -f "$SLURM_CONF"
for i in $(seq "$nodes"); do /usr/sbin/slurmd -f "$SLURM_CONF" -N "node$i"; done
for _ in $(seq 1200); do
  idle=$(sinfo -h -N -o '%t' 2>/dev/null | grep -c idle || true)
  [ "$idle" = "$nodes" ] && exit 0
  sleep 0.1
done
sinfo -N -l
tail -n 5 log/*.log
exit 1
