#!/bin/bash
# A stage of a job of Framesift's (pipeline/jobs/backends/slurm/script.py).
# WORDS
task=${SLURM_ARRAY_TASK_ID:-0}
note=$NOTES/$STAGE-$task
exec </dev/null >>"$FOLDER/logs/$STAGE-$task.log" 2>&1

now() { date -u +%Y-%m-%dT%H:%M:%S.%3N; }
say() { # FINISHED CODE END
  local said
  printf -v said '{"started": "%s", "finished": "%s", "code": %s, "end": "%s"}' "$started" "$@"
  { echo "$said" > "$note.part" && mv -f "$note.part" "$note.json"; } ||
    echo "$said" 1<> "$note.json" # without room on the disk: over the shorter one that is there
}
started=$(sed -n 's/.*"started": "\([^"]*\)".*/\1/p' "$note.json" 2>/dev/null)
[ -n "$started" ] || started=$(now)
if [ -e "$FOLDER/cancel" ]; then
  say "$(now)" 1 cancelled
  exit 1
fi
turn=${SLURM_RESTART_COUNT:-0}
[ -z "$HEADING" ] || [ "$turn" -gt 0 ] || echo "$HEADING"
[ "$turn" = 0 ] || echo "==> turn $((turn + 1)) <=="
rm -f "$note.killed" "$note.lease"
say "" null ""

hosts=
for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  hosts+=${hosts:+,}$host:${SLURM_NTASKS_PER_NODE:-${SLURM_NTASKS:-1}}
done

asked= child= guard= holder= code=
to_programs() { # SIGNAL
  # Only a program that has begun has a group of its own.
  if [ -n "$STEPS" ] && kill -s 0 -- "-$child" 2> /dev/null; then
    scancel --quiet --signal="$1" "$SLURM_JOB_ID"
  else
    kill -s "$1" "$child" # a launcher such as mpirun ends its ranks
  fi
}
end_programs() { # WHY
  [ -z "$asked" ] || return
  asked=$1
  [ -n "$child" ] || return
  to_programs TERM
  (
    sleep "$SECONDS_TO_KEEP" || exit # ended below: the programs have kept what they have
    touch "$note.killed"
    to_programs KILL
    kill -s KILL -- "-$child" || kill -s KILL "$child" # which may not have begun its program
  ) > /dev/null 2>&1 &
  guard=$!
}
trap 'end_programs signal' USR1
trap 'end_programs slurm' TERM

run() { # PROGRAM ARGUMENT..., after the site's lines, which may change what they like
  framesift_program=("$@")
  set --
  trap '[ "$?" != 0 ] || { echo "error: setup of backends.toml ended its shell"; exit 1; }' EXIT
  for framesift_line in "${setup[@]}"; do
    eval "$framesift_line" || {
      framesift_code=$?
      echo "error: setup of backends.toml, line '$framesift_line': exit code $framesift_code"
      exit "$framesift_code"
    }
  done
  trap - EXIT
  exec setsid "${framesift_program[@]}"
}

if [ ${#lease[@]} -gt 0 ]; then
  "${lease[@]}" "$note.lease" "$$" &
  holder=$!
  until [ -e "$note.lease" ]; do
    kill -s 0 "$holder" 2> /dev/null || { code=1; break; }
    sleep 0.1
  done
fi
if [ -z "$code" ] && [ -z "$asked" ]; then
# COMMANDS
  run "$@" &
  child=$!
  while wait "$child"; code=$?; kill -s 0 "$child" 2> /dev/null; do :; done
  wait "$child"
  code=$?
fi
[ -n "$code" ] || code=143
for process in $guard $holder; do
  pkill -KILL -P "$process" 2> /dev/null
  kill "$process" 2> /dev/null
done
[ -z "$holder" ] || wait "$holder"

end=
if [ -e "$FOLDER/cancel" ]; then
  end=cancelled
elif [ "$asked" = slurm ] && [ "$code" != 0 ]; then
  end=slurm
elif [ "$asked" = signal ] && [ "$code" != 0 ]; then
  end=wall
  if [ ! -e "$note.killed" ] && [ "$turn" -lt "$MOST_TURNS" ]; then
    # The programs kept what they have: the next turn goes on from there.
    scontrol requeue "$SLURM_JOB_ID" && { sleep 600; exit 1; } # Slurm ends it before
  fi
fi
# What it says has ended survives a power cut.
find "$FOLDER" -type f,d -exec sync {} + 2> /dev/null
say "$(now)" "$code" "$end"
if [ "$code" != 0 ] && [ -z "$INDEPENDENT" ] && [ -n "$SLURM_ARRAY_JOB_ID" ]; then
  scancel --quiet "$SLURM_ARRAY_JOB_ID"
fi
exit "$code"
