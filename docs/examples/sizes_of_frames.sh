#!/bin/sh
# Bytes of each rank's images and labels, by a shell that knows only a list of files.
#
#     framesift run city --ranks 2 --command 'sh sizes_of_frames.sh {files} {job}'
set -eu
list=$1 out=$2
tab=$(printf '\t')
number=0
while IFS=$tab read -r image label; do
    if [ $((number % WORLD_SIZE)) -eq "$RANK" ]; then
        bytes=$(wc -c < "$image")
        [ -z "$label" ] || bytes="$bytes $(wc -c < "$label")"
        printf '%s\t%s\n' "$image" "$bytes"
    fi
    number=$((number + 1))
done < "$list" > "$out/sizes-$RANK.tsv"
