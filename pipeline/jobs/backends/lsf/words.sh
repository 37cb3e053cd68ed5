# LSF's words. A job array counts from 1; 0 is the index of a job that is none.
own=$LSB_JOBID
task=0
if [ "${LSB_JOBINDEX:-0}" != 0 ]; then
  task=$((LSB_JOBINDEX - 1))
  own="$LSB_JOBID[$LSB_JOBINDEX]"
fi
turn=
trap ':' USR2 # which LSF sends at the run limit
requeue() { brequeue "$own"; }
end_siblings() { [ "${LSB_JOBINDEX:-0}" = 0 ] || bkill "$LSB_JOBID"; }

