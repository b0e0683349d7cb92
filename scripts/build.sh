#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json: scripts/build.sh PRESET [CMAKE-OPTION...]
# PSGD_BUILD_JOBS: compilers at once; by default one per core, and no more than memory allows (2.5 GiB each).
set -euo pipefail
[[ $# -ge 1 && $1 != -* ]] || { echo "usage: $0 PRESET [CMAKE-OPTION...]" >&2; exit 2; }
preset=$1
shift
cd "$(dirname "$0")/.."

jobs=${PSGD_BUILD_JOBS:-}
if [[ -z $jobs ]]; then
  jobs=$(nproc)
  by_memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / (2560 * 1024)))
  if ((by_memory < jobs)); then jobs=$((by_memory > 0 ? by_memory : 1)); fi
fi
cmake --preset "$preset" "$@"
cmake --build --preset "$preset" --parallel "$jobs"
