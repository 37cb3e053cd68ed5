#!/usr/bin/env bash
# Build Horovod against the TensorFlow of a Python environment, with what 'uv sync' does not build:
# NCCL on GPUs (needs CUDA's compiler; NCCL is the one of the extra train-gpu), MPI beside Gloo
# (needs mpicxx).
#
#   training/install/horovod.sh [--nccl] [--mpi] [PYTHON]      # .venv/bin/python
set -euo pipefail

usage() { echo "usage: $0 [--nccl] [--mpi] [PYTHON]" >&2; exit 2; }
stop() { echo "error: $1" >&2; exit 1; }

nccl='' mpi='' python=''
for word in "$@"; do
  case "$word" in
    --nccl) nccl=1 ;;
    --mpi) mpi=1 ;;
    -*) usage ;;
    *) [ -z "$python" ] || usage; python=$word ;;
  esac
done
python=${python:-.venv/bin/python}

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
  stop "$python does not run"
[ "$version" = 3.11 ] || stop "TensorFlow 2.15 and Horovod need Python 3.11; $python is $version"
"$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("tensorflow") is None)' ||
  stop "$python has no tensorflow: install the extra train or train-gpu first"
uv=$(command -v uv || echo .tools/uv/bin/uv)
[ -x "$uv" ] || stop "uv is not on PATH: pip install uv"

export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1
export HOROVOD_WITH_GLOO=1 CXXFLAGS=-g0 LDFLAGS=-Wl,-s
if [ -n "$mpi" ]; then
  command -v mpicxx >/dev/null || stop "no mpicxx: apt-get install libopenmpi-dev openmpi-bin"
  export HOROVOD_WITH_MPI=1
else
  export HOROVOD_WITHOUT_MPI=1
fi
if [ -n "$nccl" ]; then
  nvcc=${HOROVOD_CUDA_HOME:-${CUDA_HOME:-/usr/local/cuda}}/bin/nvcc
  [ -x "$nvcc" ] || stop "no $nvcc: name CUDA's folder in CUDA_HOME"
  export HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_GPU=CUDA HOROVOD_CUDA_HOME=${nvcc%/bin/nvcc}
  packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  wheel=$packages/nvidia/nccl
  [ -d "$wheel" ] || stop "$python has no nvidia-nccl-cu12: install the extra train-gpu first"
  # The wheel's library lacks the name that a linker looks for; at run time it is found where it lies.
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  ln -s "$wheel/include" "$home/include"
  mkdir "$home/lib"
  ln -s "$wheel/lib/libnccl.so.2" "$home/lib/libnccl.so"
  export HOROVOD_NCCL_HOME=$home HOROVOD_NCCL_LINK=SHARED
  export LDFLAGS="$LDFLAGS -Wl,-rpath,$wheel/lib"
fi

# --no-config: pyproject.toml's build settings are those of the extra train. --no-cache: a wheel that
# was built otherwise has the same name.
install=("$uv" pip install --quiet --no-config --python "$python")
"${install[@]}" 'setuptools<81' wheel 'cmake<4'
PATH="$(cd "$(dirname "$python")" && pwd):$PATH" "${install[@]}" --no-cache --no-deps --reinstall \
  --no-build-isolation --no-binary horovod horovod==0.28.1

# Needs no GPU.
TF_CPP_MIN_LOG_LEVEL=2 "$python" - "${mpi:-0}" "${nccl:-0}" <<'PYTHON'
import sys

import horovod.tensorflow as horovod

mpi, nccl = (word == "1" for word in sys.argv[1:])
print(f"Horovod: Gloo {horovod.gloo_built()}, MPI {horovod.mpi_built()}, NCCL {horovod.nccl_built()}")
sys.exit(bool(not horovod.gloo_built() or mpi > horovod.mpi_built() or nccl > horovod.nccl_built()))
PYTHON
