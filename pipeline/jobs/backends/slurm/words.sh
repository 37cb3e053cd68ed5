# Slurm's words.
task=${SLURM_ARRAY_TASK_ID:-0}
turn=${SLURM_RESTART_COUNT:-0}
hosts=
for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  hosts+=${hosts:+,}$host:${SLURM_NTASKS_PER_NODE:-${SLURM_NTASKS:-1}}
done
signal_ranks() { scancel --quiet --signal="$1" "$SLURM_JOB_ID"; }
requeue() { scontrol requeue "$SLURM_JOB_ID"; }
end_siblings() { [ -z "$SLURM_ARRAY_JOB_ID" ] || scancel --quiet "$SLURM_ARRAY_JOB_ID"; }

