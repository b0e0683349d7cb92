#!/usr/bin/env bash
# Starts N workers under mpirun with the options that this machine needs:
#   scripts/launch.sh [-v] [--dry-run] [--transport auto|ucx] N PROGRAM [ARGUMENT...]
#
# More workers than cores: oversubscription is allowed, workers yield while they wait, and none is bound to a
# core. Otherwise every worker gets cores / N cores of its own.
# --transport ucx (or PSGD_TRANSPORT=ucx): messages go over UCX, whatever devices this machine has.
# PSGD_MPIRUN: the mpirun to use. PSGD_MPIRUN_ARGS: more options for it, split at spaces; if they place the
#   workers themselves (--host, --hostfile, --map-by, --bind-to, ...), this script adds nothing about cores.
#
# SIGINT, SIGTERM and SIGUSR1 ask the workers to write a checkpoint and stop: they reach the workers as
# SIGUSR1, the one signal that mpirun passes on (given SIGTERM, it kills them a second later). A second signal
# ends mpirun, a third one kills it.
set -euo pipefail

usage() {
  echo "usage: $0 [-v] [--dry-run] [--transport auto|ucx] N PROGRAM [ARGUMENT...]" >&2
  exit 2
}

verbose=false
dry_run=false
transport=${PSGD_TRANSPORT:-auto}
while [[ ${1:-} == -* ]]; do
  case $1 in
    -v) verbose=true ;;
    --dry-run) dry_run=true ;;
    --transport) transport=${2:-}; shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "$0: unknown option '$1'" >&2; usage ;;
  esac
  shift || usage
done
[[ $# -ge 2 ]] || usage
n=$1
shift
[[ $n =~ ^[1-9][0-9]*$ ]] || {
  echo "$0: the number of workers must be a positive integer, found '$n'" >&2
  exit 2
}
[[ $transport == auto || $transport == ucx ]] || {
  echo "$0: the transport must be 'auto' or 'ucx', found '$transport'" >&2
  exit 2
}

mpirun=${PSGD_MPIRUN:-mpirun}
command -v "$mpirun" >/dev/null || {
  echo "$0: '$mpirun' not found. Install Open MPI (scripts/install.sh build) or set PSGD_MPIRUN." >&2
  exit 1
}
version=$("$mpirun" --version 2>/dev/null | sed -n '1s/.*(Open MPI) \([0-9]*\).*/\1/p')
[[ -n $version ]] || {
  echo "$0: '$mpirun' is not Open MPI's; expected its version in the output of '$mpirun --version'." >&2
  exit 1
}

# Cores that this process may use, each counted once however many hardware threads it has: Open MPI's unit
# too.
cores() {
  local cpu allowed
  allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
  for range in ${allowed//,/ }; do
    for cpu in $(seq "${range%-*}" "${range#*-}"); do
      cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu"
    done
  done | sort -u | wc -l
}

read -r -a extra <<<"${PSGD_MPIRUN_ARGS:-}"
options=()
if [[ $transport == ucx ]]; then
  # Without the last two, Open MPI takes UCX only where it finds InfiniBand.
  options+=(--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any)
fi

placed_by_user=false
for word in ${extra[@]+"${extra[@]}"}; do
  case $word in
    -H | --host | -host | --hostfile | -hostfile | --machinefile | -machinefile | --map-by | -map-by | \
      --bind-to | -bind-to | --rankfile | --oversubscribe) placed_by_user=true ;;
  esac
done
# In a batch system's allocation mpirun knows the nodes and their cores; this node's count would be wrong.
if [[ $placed_by_user == false && -z ${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-} ]]; then
  n_cores=$(cores)
  # Where the system hides the layout of its cores, Open MPI cannot bind, and may see a single core.
  if ((n > n_cores)) || [[ ! -d /sys/devices/system/cpu/cpu0/topology ]]; then
    if ((version >= 5)); then options+=(--map-by slot:OVERSUBSCRIBE); else options+=(--oversubscribe); fi
    options+=(--bind-to none --mca mpi_yield_when_idle 1)
  else
    options+=(--map-by "slot:PE=$((n_cores / n))" --bind-to core)
  fi
fi

environment=()
if [[ $(id -u) == 0 ]]; then
  environment+=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
  environment+=(PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1)
fi

# glibc then asks for huge pages: workers that share a core spend less on finding their memory in the page tables.
if [[ -z ${GLIBC_TUNABLES:-} ]]; then
  environment+=(GLIBC_TUNABLES=glibc.malloc.hugetlb=1)
  options+=(-x GLIBC_TUNABLES)
fi

# "${a[@]+"${a[@]}"}": an empty array is an unset variable to older shells.
command_line=(env ${environment[@]+"${environment[@]}"} "$mpirun" -n "$n" ${options[@]+"${options[@]}"}
  ${extra[@]+"${extra[@]}"} "$@")
if [[ $verbose == true || $dry_run == true ]]; then
  printf '%q ' "${command_line[@]}"
  echo
fi >&2
[[ $dry_run == false ]] || exit 0

# A process group of its own keeps a Ctrl-C at the terminal from reaching mpirun, which would kill the
# workers.
set -m
"${command_line[@]}" </dev/null &
child=$!
set +m
signals=0
pass_on() {
  signals=$((signals + 1))
  case $signals in
    1) kill -USR1 "$child" ;;
    2) kill -TERM "$child" ;;
    *) kill -KILL "$child" ;;
  esac 2>/dev/null || true
}
trap pass_on INT TERM USR1 USR2 HUP

# wait returns early for every trapped signal; the status of the child is the one of the last wait.
while :; do
  status=0
  seen=$signals
  wait "$child" || status=$?
  if ((seen == signals)); then exit "$status"; fi
  kill -0 "$child" 2>/dev/null || { status=0; wait "$child" || status=$?; exit "$status"; }
done
