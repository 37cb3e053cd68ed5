#!/bin/bash
# A stage of a job of Framesift's (pipeline/jobs/backends/batch/script.py).
# WORDS
# DIALECT
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
if [ -z "${turn-}" ]; then # the scheduler does not count
  turn=$(cat "$note.turns" 2>/dev/null || echo 0)
  echo $((turn + 1)) > "$note.turns"
fi
[ -z "$HEADING" ] || [ "$turn" -gt 0 ] || echo "$HEADING"
[ "$turn" = 0 ] || echo "==> turn $((turn + 1)) <=="
rm -f "$note.killed" "$note.lease"
say "" null ""

asked= child= guard= holder= code=
to_programs() { # SIGNAL
  # Only a program that has begun has a group of its own.
  if [ -n "$STEPS" ] && kill -s 0 -- "-$child" 2> /dev/null; then
    signal_ranks "$1"
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
trap 'end_programs scheduler' TERM INT

( # Before the wall time ends, and once the job is cancelled, its programs are to keep what they have.
  trap - USR1 TERM INT
  until [ -e "$FOLDER/cancel" ] ||
    { [ -n "$SECONDS_TO_WORK" ] && [ "$SECONDS" -ge "$SECONDS_TO_WORK" ]; }; do
    sleep 2
  done
  kill -s USR1 "$$"
) > /dev/null 2>&1 &
clock=$!

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
for process in $guard $holder $clock; do
  pkill -KILL -P "$process" 2> /dev/null
  kill "$process" 2> /dev/null
done
[ -z "$holder" ] || wait "$holder"

end=
if [ -e "$FOLDER/cancel" ]; then
  end=cancelled
elif [ "$asked" = scheduler ] && [ "$code" != 0 ]; then
  end=scheduler
elif [ "$asked" = signal ] && [ "$code" != 0 ]; then
  end=wall
  if [ ! -e "$note.killed" ]; then
    end=turn
    # The programs kept what they have: the next turn goes on from there.
    if [ "$turn" -lt "$MOST_TURNS" ]; then
      requeue
      # A signal is the scheduler's, which ends all processes of this turn, the command's, too.
      case $? in 0 | 130 | 137 | 143) sleep 600; exit 1 ;; esac
    fi
  fi
fi
# What it says has ended survives a power cut.
find "$FOLDER" -type f,d -exec sync {} + 2> /dev/null
say "$(now)" "$code" "$end"
[ "$code" = 0 ] || [ -n "$INDEPENDENT" ] || end_siblings
exit "$code"
