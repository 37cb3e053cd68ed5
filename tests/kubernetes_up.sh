#!/bin/bash
# A real Kubernetes in one folder: etcd, the API server with RBAC and an audit log, the controllers
# and the scheduler. It has no kubelets: who plays one writes nodes and pods' statuses.
# The admin's token is "admin-token". Each process's number is in run/*.pid.
# usage: kubernetes_up.sh FOLDER PROGRAMS PORT: PORT to PORT+4 are free
set -euo pipefail
folder=$1 programs=$2 port=$3
mkdir -p "$folder"/{run,log}
cd "$folder"
openssl genrsa -out sa.key 2048 2>/dev/null
echo "admin-token,admin,admin,system:masters" >tokens.csv
printf 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n' >audit.yaml

start() { # start NAME COMMAND...
  "${@:2}" >"log/$1" 2>&1 </dev/null &
  echo $! >"run/$1.pid"
}
etcd=http://127.0.0.1:$((port + 1)) peer=http://127.0.0.1:$((port + 2))
start etcd etcd --data-dir "$folder/etcd" --unsafe-no-fsync \
  --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
  --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
start api "$programs/kube-apiserver" --etcd-servers="$etcd" --cert-dir="$folder/certs" \
  --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$port" --insecure-port=0 \
  --service-account-key-file=sa.key --service-account-signing-key-file=sa.key \
  --service-account-issuer=https://kubernetes.default.svc --token-auth-file=tokens.csv \
  --authorization-mode=RBAC --service-cluster-ip-range=10.0.0.0/24 \
  --audit-policy-file=audit.yaml --audit-log-path="$folder/audit.log"
cat >kubeconfig <<END
apiVersion: v1
kind: Config
current-context: test
clusters:
- {name: test, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $folder/certs/apiserver.crt}}
users: [{name: admin, user: {token: admin-token}}]
contexts: [{name: test, context: {cluster: test, user: admin, namespace: default}}]
END
until curl --silent --fail --cacert certs/apiserver.crt --max-time 5 \
  "https://127.0.0.1:$port/readyz" >/dev/null; do
  kill -0 "$(<run/api.pid)" || { tail -n 20 log/api >&2; exit 1; }
  sleep 0.2
done
# No machine reports, and none shall be called lost for that.
start controllers "$programs/kube-controller-manager" --kubeconfig=kubeconfig \
  --leader-elect=false --port=0 --secure-port=$((port + 3)) --bind-address=127.0.0.1 \
  --cert-dir="$folder/certs-controllers" --service-account-private-key-file=sa.key \
  --controllers='*,-nodelifecycle,-nodeipam,-cloud-node-lifecycle,-route,-service'
start scheduler "$programs/kube-scheduler" --kubeconfig=kubeconfig --leader-elect=false --port=0 \
  --secure-port=$((port + 4)) --bind-address=127.0.0.1 --cert-dir="$folder/certs-scheduler"
