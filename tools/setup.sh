#!/usr/bin/env bash
# Installs what is missing: Debian packages, then the virtual environment .venv with the pinned
# versions of tools/requirements-dev.txt. `setup.sh bench` makes .venv-bench from
# tools/requirements-bench.txt instead. With nothing to do it ends at once.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache libgtest-dev libbenchmark-dev libfmt-dev nlohmann-json3-dev
          python3-venv python3-dev valgrind libllvm19
          ocl-icd-libopencl1 pocl-opencl-icd libvulkan1 mesa-vulkan-drivers)

install_packages() {
  if ! command -v dpkg-query > /dev/null; then
    echo "setup: no Debian here; expecting the equivalents of: ${packages[*]}" >&2
    return
  fi
  local missing=() p
  for p in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$p" 2> /dev/null) == installed ]] || missing+=("$p")
  done
  (( ${#missing[@]} )) || return 0

  local as_root=()
  if (( EUID != 0 )); then
    if ! sudo -n true 2> /dev/null && ! { [[ -t 0 ]] && command -v sudo > /dev/null; }; then
      echo "setup: packages are missing and this user cannot install them. As root, run:" >&2
      echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || echo "setup: apt-get update failed; using the lists at hand" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

# make_venv <folder> <requirements file>: a stamp in the folder names what it was made from.
make_venv() {
  local venv=$1 requirements=$2 key
  key=$(python3 -c 'import sys; print(sys.version, sys.prefix)'; sha256sum tools/setup.sh "$requirements"; pwd)
  [[ -x $venv/bin/python && $(cat "$venv/.stamp" 2> /dev/null) == "$key" ]] && return

  echo "setup: making $venv from $requirements"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements"
  # `import weft` finds the package of the release build.
  echo "$PWD/build/release/python" > "$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/weft.pth"
  echo "$key" > "$venv/.stamp"
}

install_packages
case ${1:-dev} in
  dev) make_venv .venv tools/requirements-dev.txt ;;
  bench) make_venv .venv-bench tools/requirements-bench.txt ;;
  *) echo "usage: tools/setup.sh [dev|bench]" >&2; exit 2 ;;
esac
