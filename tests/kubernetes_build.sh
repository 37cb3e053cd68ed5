#!/bin/bash
# The API server, controller manager and scheduler of Kubernetes 1.20, built from Debian's source
# package into FOLDER: 7 minutes of CPU, once. Needs root, for the source package's list.
# Debian packages: golang-go dpkg-dev rsync make golang-github-modern-go-reflect2-dev.
# usage: kubernetes_build.sh FOLDER [PROCESSES]
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd) processes=${2:-$(nproc)}
programs=(kube-apiserver kube-controller-manager kube-scheduler)
exec 9>"$folder/lock"
flock 9
all_there() { for each in "${programs[@]}"; do [ -x "$folder/$each" ] || return 1; done; }
all_there && exit 0
for each in go dpkg-source rsync make; do
  command -v "$each" >/dev/null || { echo "no $each here: Kubernetes is not built" >&2; exit 1; }
done

build=$folder/build
rm -rf "$build"
mkdir -p "$build"/{lists/partial,parts,home}
trap 'rm -rf "$build"' EXIT
cd "$build"
# The machine's own mirror, for source packages, in a list of its own.
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >parts/src.sources
own=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$build/parts"
  -o "Dir::State::Lists=$build/lists" -o APT::Sandbox::User=root)
apt-get "${own[@]}" update -qq
apt-get "${own[@]}" source -qq kubernetes
source=$(echo "$build"/kubernetes-1.*/)

# reflect2 1.0.1, which it brings, ends the server at the first custom resource with Go 1.18 and
# later; Debian's is 1.0.2.
vendored=$source/vendor/github.com/modern-go/reflect2
rm "$vendored"/*.go "$vendored"/*.s
cp /usr/share/gocode/src/github.com/modern-go/reflect2/*.{go,s} "$vendored"/
rm -f "$vendored"/*_test.go

cd "$source"
export GOPATH=$PWD/.go HOME=$build/home GOMAXPROCS=$processes GOFLAGS=
export CGO_ENABLED=0 GOPROXY=off GOSUMDB=off PATH=/usr/lib/go/bin:$PATH
mkdir -p .go/src/k8s.io
ln -sfn ../../.. .go/src/k8s.io/kubernetes
make WHAT="${programs[*]/#/cmd/}"
for each in "${programs[@]}"; do
  cp "_output/local/bin/linux/amd64/$each" "$folder/$each.new"
  mv "$folder/$each.new" "$folder/$each"
done
