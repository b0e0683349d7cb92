#!/usr/bin/env bash
# Finds or gets a data set:  scripts/data.sh [--into DIR] [FOLDER]
# Its last line of output says what came of it: "dataset=NAME data_dir=PATH".
#
# FOLDER, or PSGD_DATA: a folder that holds CIFAR-10's binary version or Fashion-MNIST already; nothing is
# fetched. Otherwise CIFAR-10 is downloaded from its authors' site to DIR (default: data/ beside scripts/),
# once, and its md5 is checked. If the site cannot be reached, Debian's package of Fashion-MNIST takes its
# place, with a notice.
#
# PSGD_DATASET: the data set's name, where the one found out is wrong.
# PSGD_CIFAR10_URL, PSGD_CIFAR10_MD5: another place for the archive, and what it must be.
set -euo pipefail

url=${PSGD_CIFAR10_URL:-https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz}
md5=${PSGD_CIFAR10_MD5:-c32a1d4ab5d03f1284b67883e8d87530}
fashion_mnist=/usr/share/datasets/fashion-mnist
file_bytes=30730000
scripts=$(cd "$(dirname "$0")" && pwd)
into=$scripts/../data
folder=${PSGD_DATA:-}

usage() {
  echo "usage: $0 [--into DIR] [FOLDER]" >&2
  exit 2
}
while (($#)); do
  case $1 in
    --into) [[ $# -ge 2 ]] || usage; into=$2; shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) usage ;;
    *) folder=$1 ;;
  esac
  shift
done

fail() {
  echo "$0: $*" >&2
  exit 1
}

answer() {
  echo "dataset=${PSGD_DATASET:-$1} data_dir=$(cd "$2" && pwd)"
  exit 0
}

# Whether a folder holds all six files of CIFAR-10, whole.
is_cifar10() {
  local name
  for name in data_batch_{1..5}.bin test_batch.bin; do
    [[ -f $1/$name && $(stat -L -c %s "$1/$name") == "$file_bytes" ]] || return 1
  done
}

first_bytes() { head -c 4 "$1" | od -An -tx1 | tr -d ' \n'; }

# The published files begin with a frog (6) and a cat (3). Copies made from image files hold other pixels in
# another order, and results on them must carry another name.
cifar10_name() {
  local first
  first="$(first_bytes "$1/data_batch_1.bin") $(first_bytes "$1/test_batch.bin")"
  if [[ $first == "063b2b32 039e9fa5" ]]; then
    echo cifar10
  else
    echo "$1 does not begin with the published CIFAR-10's images: taken for JPEG copies of them." >&2
    echo cifar10-jpeg
  fi
}

use_folder() {
  local place
  [[ -d $1 ]] || fail "no folder '$1'"
  for place in "$1" "$1/cifar-10-batches-bin"; do
    if is_cifar10 "$place"; then answer "$(cifar10_name "$place")" "$place"; fi
  done
  if [[ -f $1/train-images-idx3-ubyte.gz ]]; then answer fashion-mnist "$1"; fi
  fail "'$1' holds neither CIFAR-10's binary version (data_batch_1.bin ... data_batch_5.bin and" \
    "test_batch.bin, $file_bytes bytes each) nor Fashion-MNIST (train-images-idx3-ubyte.gz, ...)"
}

unpack() {
  local found
  found=$(md5sum <"$1")
  found=${found%% *}
  [[ $found == "$md5" ]] || fail "the archive from $url has md5 $found, but CIFAR-10's is $md5." \
    "It is damaged or something else; nothing was kept of it. Try again, or give a folder with" \
    "the right files."
  mkdir "$work/unpacked"
  tar -xzf "$1" -C "$work/unpacked"
  is_cifar10 "$work/unpacked/cifar-10-batches-bin" ||
    fail "the archive from $url lacks some of CIFAR-10's six files of $file_bytes bytes"
  rm -rf "$into/cifar-10-batches-bin"
  mv "$work/unpacked/cifar-10-batches-bin" "$into/"
}

[[ -z $folder ]] || use_folder "$folder"
if is_cifar10 "$into/cifar-10-batches-bin"; then use_folder "$into/cifar-10-batches-bin"; fi

"$scripts/install.sh" data >&2
mkdir -p "$into"
work=$(mktemp -d "$into/.download.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
echo "Downloading CIFAR-10 from $url ..." >&2
status=0
curl --fail --location --silent --show-error --connect-timeout 15 --max-time 1800 \
  --speed-limit 10000 --speed-time 30 --output "$work/cifar-10-binary.tar.gz" "$url" >&2 || status=$?
if ((status == 0)); then
  unpack "$work/cifar-10-binary.tar.gz"
  use_folder "$into/cifar-10-batches-bin"
fi
{
  echo "NOTICE: CIFAR-10 could not be downloaded (curl's status $status)."
  echo "NOTICE: Fashion-MNIST (grey images of clothes, padded to 32x32) is used in its place. All results"
  echo "NOTICE: say so; they do not compare with results on CIFAR-10."
} >&2
"$scripts/install.sh" fashion-mnist >&2
[[ -d $fashion_mnist ]] || fail "the package dataset-fashion-mnist left nothing in $fashion_mnist"
answer fashion-mnist "$fashion_mnist"
