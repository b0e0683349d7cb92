#!/usr/bin/env bash
# Formats every C++, Python and JavaScript file, or with --check names those that are not formatted:
#   scripts/format.sh [--check]
# The formatters come from npm, in the versions that scripts/format/package-lock.json pins.
set -euo pipefail
cd "$(dirname "$0")/.."
check=false
case ${1:-} in
  "") ;;
  --check) check=true ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
esac

tools=scripts/format
if [[ ! $tools/node_modules/.package-lock.json -nt $tools/package-lock.json ]]; then
  npm ci --prefix "$tools" --silent --no-audit --no-fund
  touch "$tools/node_modules/.package-lock.json"
fi
mapfile -t cpp < <(git ls-files '*.cpp' '*.h' '*.c')
mapfile -t python < <(git ls-files '*.py')
mapfile -t javascript < <(git ls-files '*.js' '*.mjs' '*.css')
status=0
if $check; then
  "$tools/node_modules/.bin/clang-format" --dry-run --Werror "${cpp[@]}" || status=1
  node "$tools/python.mjs" --check "${python[@]}" || status=1
  "$tools/node_modules/.bin/prettier" --config "$tools/.prettierrc.json" --check "${javascript[@]}" || status=1
  ((status == 0)) || echo "$0: run scripts/format.sh" >&2
else
  "$tools/node_modules/.bin/clang-format" -i "${cpp[@]}"
  node "$tools/python.mjs" "${python[@]}"
  "$tools/node_modules/.bin/prettier" --config "$tools/.prettierrc.json" --log-level warn --write "${javascript[@]}"
fi
exit "$status"
