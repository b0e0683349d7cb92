#!/usr/bin/env bash
# Runs every fuzz target for a time, as many at once as there are cores:  tests/fuzz/run.sh BUILD_FOLDER SECONDS
# A target that fails does not keep the others from running; the exit status is 1 then. What broke it is left in
# BUILD_FOLDER as fuzz_TARGET-crash-* (or -timeout-*, -oom-*, -leak-*); give that file to the target to see it again.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: tests/fuzz/run.sh BUILD_FOLDER SECONDS" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
seconds=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fuzz() {
  local target=$1 log=$work/$1.log dictionary=()
  [ "$target" = dataset ] || dictionary=("-dict=$here/json.dict")
  mkdir "$work/$target"
  # Inputs found go to the first folder, so that those kept here stay as they are.
  if "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=8192 -timeout=20 -rss_limit_mb=4096 \
    -artifact_prefix="$build/fuzz_$target-" -print_final_stats=1 ${dictionary[@]+"${dictionary[@]}"} \
    "$work/$target" "$here/corpus/$target" >"$log" 2>&1; then
    echo "fuzz_$target: passed, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s"
  else
    tail -n 60 "$log"
    echo "fuzz_$target: FAILED"
    touch "$work/failed"
  fi
}

for target in config run dataset; do
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
  fuzz "$target" &
done
wait
[ ! -e "$work/failed" ]
