#!/usr/bin/env bash
# Installs what is missing: Debian packages, then the virtual environment .venv with the pinned
# versions of tools/requirements-dev.txt. `setup.sh run` installs only what the library and its Python
# package need (tools/requirements-run.txt); `setup.sh bench` makes .venv-bench from
# tools/requirements-bench.txt. With nothing to do it ends at once. What pip and apt say is in
# build/setup.log.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache libfmt-dev nlohmann-json3-dev python3-venv python3-dev libllvm19)
if [[ ${1:-dev} != run ]]; then
  packages+=(libgtest-dev libbenchmark-dev valgrind ocl-icd-libopencl1 pocl-opencl-icd libvulkan1
             mesa-vulkan-drivers)
fi
log=build/setup.log
mkdir -p build

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
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >> "$log" 2>&1
}

# key_of <requirements file>: what an environment made from it is known by.
key_of() {
  python3 -c 'import sys; print(sys.version, sys.prefix)'
  sha256sum tools/setup.sh "$1"
  pwd
}

# is_made <stamp> <requirements file>
is_made() { [[ $(cat "$1" 2> /dev/null) == "$(key_of "$2")" ]]; }

# make_venv <folder> <requirements file> <stamp>: the stamp names what it was made from. An environment that another file
# has made is added to.
make_venv() {
  local venv=$1 requirements=$2 stamp=$3
  [[ -x $venv/bin/python ]] && is_made "$stamp" "$requirements" && return

  echo "setup: making $venv from $requirements"
  if ! is_made "$venv/.stamp-run" tools/requirements-run.txt; then
    rm -rf "$venv"
    python3 -m venv "$venv"
  fi
  if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements" >> "$log" 2>&1; then
    echo "setup: pip failed; the end of $log:" >&2
    tail -n 20 "$log" >&2
    exit 1
  fi
  # `import weft` finds the package of the release build, and `weft` is its command.
  echo "$PWD/build/release/python" > "$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/weft.pth"
  printf '#!%s\nfrom weft.__main__ import main\n\nmain()\n' "$PWD/$venv/bin/python" > "$venv/bin/weft"
  chmod +x "$venv/bin/weft"
  key_of "$requirements" > "$stamp"
}

install_packages
case ${1:-dev} in
  dev) make_venv .venv tools/requirements-dev.txt .venv/.stamp ;;
  run)  # an environment for development has all of it
    is_made .venv/.stamp tools/requirements-dev.txt ||
      make_venv .venv tools/requirements-run.txt .venv/.stamp-run ;;
  bench) make_venv .venv-bench tools/requirements-bench.txt .venv-bench/.stamp ;;
  *) echo "usage: tools/setup.sh [dev|run|bench]" >&2; exit 2 ;;
esac
