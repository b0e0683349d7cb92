#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang and runs each for a time:  scripts/fuzz.sh [SECONDS]
# SECONDS: 60 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh fuzz
scripts/build.sh fuzz
tests/fuzz/run.sh build/fuzz "${1:-60}"
