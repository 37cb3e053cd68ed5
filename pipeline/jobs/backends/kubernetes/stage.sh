#!/bin/sh
# A stage of a job of Framesift's, in a pod: pipeline/jobs/backends/kubernetes/script.py.
# Its argument is the number of the stage's turn.
# WORDS
turn=$1
index=${JOB_COMPLETION_INDEX:-0}
command=$((index / PODS))
node=$((index % PODS))
note=$NOTES/$STAGE-$index
exec < /dev/null >> "$FOLDER/logs/$STAGE-$command.log" 2>&1
cd "$FOLDER" || exit 1

now() { date -u +%Y-%m-%dT%H:%M:%S; }
say() { # FINISHED CODE END
  said="{\"started\": \"$started\", \"finished\": \"$1\", \"code\": $2, \"end\": \"$3\"}"
  { echo "$said" > "$note.part" && mv -f "$note.part" "$note.json"; } ||
    echo "$said" 1<> "$note.json" # without room on the disk: over the shorter one that is there
}
said=
[ ! -e "$note.json" ] || read -r said < "$note.json"
case $said in
  *'"code": 0,'*) exit 0 ;; # in an earlier turn
  *'"started": "'*)
    started=${said#*\"started\": \"}
    started=${started%%\"*}
    ;;
  *) started=$(now) ;;
esac
if [ -e "$FOLDER/cancel" ]; then
  say "$(now)" 1 cancelled
  exit 1
fi
begun=0
[ ! -e "$note.turns" ] || read -r begun < "$note.turns"
echo $((begun + 1)) > "$note.turns"
if [ "$node" = 0 ]; then
  [ -z "$HEADING" ] || [ "$begun" -gt 0 ] || echo "$HEADING"
  [ "$begun" = 0 ] || echo "==> turn $((begun + 1)) <=="
fi
rm -f "$note.killed"
say "" null ""
# A user whom the image does not know has a home that is not theirs.
[ -w "${HOME:-/}" ] || export HOME=/tmp

asked= child= guard=
end_programs() { # WHY
  [ -z "$asked" ] || return
  asked=$1
  [ -n "$child" ] || return
  kill -s TERM "$child"
  (
    trap - TERM USR1
    sleep "$SECONDS_TO_KEEP"
    : > "$note.killed"
    kill -s KILL "$child"
  ) > /dev/null 2>&1 &
  guard=$!
}
trap 'end_programs wall' USR1
trap 'end_programs cluster' TERM INT
( # Before the wall time ends, and once the job is cancelled, programs are to keep what they have.
  trap - TERM USR1
  begun_s=$(date +%s)
  until [ -e "$FOLDER/cancel" ] ||
    { [ -n "$SECONDS_TO_WORK" ] && [ $(($(date +%s) - begun_s)) -ge "$SECONDS_TO_WORK" ]; }; do
    sleep 2
  done
  kill -s USR1 "$$"
) > /dev/null 2>&1 &
clock=$!

rank_files=$NOTES/ranks-$NAME-$turn-$STAGE-$command
# A turn that was broken off left files by which its ranks met.
[ "$node" != 0 ] || rm -f "$rank_files".*
# COMMANDS
if [ -z "$asked" ]; then
  "$@" &
  child=$!
  [ -z "$asked" ] || kill -s TERM "$child"
  while
    wait "$child"
    code=$?
    kill -s 0 "$child" 2> /dev/null
  do :; done
else
  code=143
fi
kill $clock $guard 2> /dev/null
[ "$node" != 0 ] || [ "$code" = 0 ] || rm -f "$rank_files".*

end=
if [ "$code" != 0 ] && [ -e "$FOLDER/cancel" ]; then
  end=cancelled
elif [ "$code" != 0 ] && [ "$asked" = cluster ]; then
  end=cluster
elif [ "$code" != 0 ] && [ "$asked" = wall ]; then
  end=turn # the programs kept what they have: the next turn goes on from there
  [ ! -e "$note.killed" ] || end=wall
fi
# What it says has ended survives a power cut of this node.
find "$FOLDER" -type f -exec sync {} + 2> /dev/null
say "$(now)" "$code" "$end"
exit "$code"
