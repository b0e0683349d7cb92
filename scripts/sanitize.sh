#!/usr/bin/env bash
# Builds and runs tests with a sanitizer; a finding fails its test:  scripts/sanitize.sh [asan|tsan] [CTEST-OPTION...]
#   asan (default)  addresses, leaks and undefined behaviour: every test
#   tsan            threads: the tests that have to do with them
# Takes too long for every change.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-asan}
[[ $preset == asan || $preset == tsan ]] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
shift || true

scripts/install.sh test
scripts/build.sh "$preset" -DPSGD_BUILD_TESTS=ON -DPSGD_BUILD_BENCHMARKS=OFF
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset "$preset" "$@" | tee "$log" || status=$?
if ((status)); then
  echo "$preset: FAILED"
  exit "$status"
fi
sed -n "s/^100% tests passed.* out of \([0-9]*\)$/$preset: all \1 tests passed, nothing found/p" "$log"
