#!/usr/bin/env bash
# pretended_ssh.sh HOST COMMAND...: as ssh would, runs the command on another host, but on a pretended one: this machine,
# with the host's name and with process ids and a /proc of its own. Needs root, or the right to make namespaces.
set -euo pipefail
exec unshare --uts --pid --fork --mount-proc --kill-child bash -c 'hostname "$0"; eval "$*"' "$@"
