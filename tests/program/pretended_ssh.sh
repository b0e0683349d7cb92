#!/usr/bin/env bash
# pretended_ssh.sh HOST COMMAND...: as ssh would, runs the command on another host, but on a pretended one: this machine,
# with the host's name and with process ids and a /proc of its own. Needs root, or the right to make namespaces.
set -euo pipefail
# In a root made with chroot, unshare could not change how mounts spread, as it would unasked.
exec unshare --uts --pid --fork --propagation unchanged --mount-proc --kill-child \
  bash -c 'hostname "$0"; eval "$*"' "$@"
