# PBS's words.
task=${PBS_ARRAY_INDEX:-0}
turn=
cd "$FOLDER" || exit 1
requeue() { qrerun "$PBS_JOBID"; }
end_siblings() { [ -z "${PBS_ARRAY_ID-}" ] || qdel "$PBS_ARRAY_ID"; }

