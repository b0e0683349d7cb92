#!/usr/bin/env bash
# Runs every fuzz target for a time:  tests/fuzz/run.sh BUILD_FOLDER SECONDS
# What breaks one is left in the current folder as crash-*; give that file to the target to see it again.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: tests/fuzz/run.sh BUILD_FOLDER SECONDS" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
for target in config run dataset; do
  found=$(mktemp -d)
  trap 'rm -rf "$found"' EXIT
  dictionary=()
  [ "$target" = dataset ] || dictionary=("-dict=$here/json.dict")
  echo "fuzz_$target: $2 s"
  # Inputs found go to the first folder, so that those kept here stay as they are.
  "$1/tests/fuzz/fuzz_$target" -max_total_time="$2" -max_len=8192 -timeout=20 -rss_limit_mb=4096 -verbosity=0 \
    -print_final_stats=1 "${dictionary[@]}" "$found" "$here/corpus/$target" 2>&1 | grep -E "stat::number|ERROR|SUMMARY|crash-" ||
    { echo "fuzz_$target failed" >&2; exit 1; }
  rm -rf "$found"
done
