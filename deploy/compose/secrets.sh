#!/bin/bash
# Makes the passwords and keys of compose.yaml, each once, in a folder that only its owner enters.
# The files can be read by everybody, as containers have users of their own.
# usage: secrets.sh [FOLDER]
set -euo pipefail
folder=${1:-$(cd "$(dirname "$0")" && pwd)/secrets}
if [ -e "$folder" ]; then
  echo "error: $folder is there already, and what the volumes hold needs it; remove both to begin again" >&2
  exit 1
fi
random() { head -c 24 /dev/urandom | base64 | tr '+/' 'xy'; }
umask 022
made=$(mktemp -d "$folder.XXXXXX") # of mode 0700
trap 'rm -rf "$made"' EXIT
password=$(random) id=$(random) key=$(random)

printf '%s' "$password" >"$made/postgres_password"
printf '[framesift]\npassword=%s\n' "$password" >"$made/pg_service.conf"
printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$id" "$key" >"$made/s3_keys"
cat >"$made/s3_identities.json" <<END
{"identities": [{"name": "framesift", "actions": ["Admin", "Read", "Write", "List"],
  "credentials": [{"accessKey": "$id", "secretKey": "$key"}]}]}
END
printf '%s' "$(random)" >"$made/grafana_password"
printf '%s' "$(random)" >"$made/jupyter_token"
# Tokens of Prometheus and of notebooks: `framesift token create` prints them, once the server runs
# (docs/deploy.md).
: >"$made/metrics_token"
: >"$made/notebook_token"
mv "$made" "$folder"
trap - EXIT
echo "made $folder"
