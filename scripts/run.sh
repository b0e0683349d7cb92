#!/usr/bin/env bash
# From a fresh clone to the table of results:  scripts/run.sh [--data FOLDER] [--output DIR]
#
# Installs what is missing, builds, gets a data set (scripts/data.sh), runs the nine experiments of
# configs/quick with 16 workers, exports them, prints the table and writes the report. A few minutes on 2
# cores, besides the build. Given again, it goes on where it stopped. --output: where the runs go (default:
# runs/quick).
set -euo pipefail
cd "$(dirname "$0")/.."

data=()
output=runs/quick
usage() {
  echo "usage: $0 [--data FOLDER] [--output DIR]" >&2
  exit 2
}
while (($#)); do
  case $1 in
    --data) [[ $# -ge 2 ]] || usage; data=("$2"); shift ;;
    --output) [[ $# -ge 2 ]] || usage; output=$2; shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) usage ;;
  esac
  shift
done
step() { printf '\n== %s\n' "$*"; }

step "Installing what is missing"
scripts/install.sh build

step "Building"
scripts/build.sh release -DPSGD_BUILD_TESTS=OFF -DPSGD_BUILD_BENCHMARKS=OFF

step "Data set"
answer=$(scripts/data.sh ${data[@]+"${data[@]}"} | tail -n 1)
echo "$answer"
dataset=${answer#dataset=}
data_dir=${dataset#* data_dir=}
dataset=${dataset%% *}

step "Nine experiments with 16 workers: $output"
status=0
scripts/sweep.py configs/quick/sweep.json --output "$output" \
  --set "dataset=$dataset" --set "data_dir=$data_dir" || status=$?
((status == 0 || status == 1 || status == 3)) || exit "$status"

step "Export"
runs=()
for record in "$output"/*/run.json; do
  if [[ $record != *.failed-*/run.json ]]; then runs+=("${record%/run.json}"); fi
done
build/release/powersgd-bench export "${runs[@]}" --out "$output/export"

if [[ -x scripts/report/report ]]; then
  step "Report"
  if ! { scripts/install.sh report && scripts/report/report "${runs[@]}" --out "$output/report"; }; then
    echo "NOTICE: no report was written, for the reason above. $output is complete without it." >&2
  fi
fi
exit "$status"
