#!/usr/bin/env bash
# Installs what is missing, through apt-get (Debian 12 and 13, Ubuntu):
#   scripts/install.sh [--dry-run] [SET...]
# SET: build (default), test, report, report-test, data (to download CIFAR-10), fashion-mnist (the data set to
# fall back on), fuzz.
#
# A package counts as there if Debian's package is installed or, for programs, if the command is found.
# PSGD_SKIP_PACKAGES: packages to leave out, separated by spaces, e.g. "libtorch-dev" with a LibTorch of your
# own.
set -euo pipefail

# PACKAGE, or PACKAGE:COMMAND where any program of that name will do.
build=(cmake:cmake ninja-build:ninja g++:g++ git:git python3:python3 ccache:ccache libtorch-dev libopenmpi-dev
  openmpi-bin libucx-dev libcli11-dev libspdlog-dev nlohmann-json3-dev zlib1g-dev)
test=("${build[@]}" libgtest-dev libgmock-dev libbenchmark-dev python3-torch python3-numpy
  dataset-fashion-mnist shellcheck:shellcheck curl:curl)
report=(nodejs:node npm:npm)
report_test=("${report[@]}" chromium:chromium fonts-dejavu-core)
data=(curl:curl ca-certificates)
fashion_mnist=(dataset-fashion-mnist)
fuzz=("${build[@]}" clang:clang libclang-rt-dev)

dry_run=false
entries=()
for word in "$@"; do
  case $word in
    --dry-run) dry_run=true ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    build) entries+=("${build[@]}") ;;
    test) entries+=("${test[@]}") ;;
    report) entries+=("${report[@]}") ;;
    report-test) entries+=("${report_test[@]}") ;;
    data) entries+=("${data[@]}") ;;
    fashion-mnist) entries+=("${fashion_mnist[@]}") ;;
    fuzz) entries+=("${fuzz[@]}") ;;
    *)
      echo "$0: unknown set '$word'; known: build, test, report, report-test, data, fashion-mnist, fuzz" >&2
      exit 2
      ;;
  esac
done
((${#entries[@]})) || entries=("${build[@]}")

is_installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

missing=()
for entry in "${entries[@]}"; do
  package=${entry%:*}
  command=
  [[ $entry != *:* ]] || command=${entry#*:}
  case " ${PSGD_SKIP_PACKAGES:-} ${missing[*]-} " in *" $package "*) continue ;; esac
  if [[ -n $command ]] && command -v "$command" >/dev/null; then continue; fi
  if command -v dpkg-query >/dev/null && is_installed "$package"; then continue; fi
  missing+=("$package")
done
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  {
    echo "$0: this is not a Debian system (no apt-get). Please install these yourself, under the names that"
    echo "they have here:"
    printf '  %s\n' "${missing[@]}"
    echo "Then set PSGD_SKIP_PACKAGES=\"${missing[*]}\" to go on."
  } >&2
  exit 1
fi
run=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || {
    echo "$0: needs root to install: ${missing[*]}" >&2
    echo "Run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  }
  run=(sudo)
fi
echo "Installing: ${missing[*]}"
[[ $dry_run == false ]] || exit 0
run+=(env DEBIAN_FRONTEND=noninteractive)
"${run[@]}" apt-get update -q
"${run[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
