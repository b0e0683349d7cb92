#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test:  scripts/test.sh [PRESET]
# PRESET: release (default), debug, asan or tsan. The fuzzers (a minute each) and the report's own tests run with
# release only.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}

scripts/install.sh test
scripts/build.sh "$preset" -DPSGD_BUILD_TESTS=ON -DPSGD_BUILD_BENCHMARKS=ON
ctest --preset "$preset"
[[ $preset == release ]] || exit 0

scripts/fuzz.sh 60

if [[ -f scripts/report/package.json ]]; then
  scripts/install.sh report-test
  cd scripts/report
  npm ci --no-audit --no-fund
  npm test
fi
