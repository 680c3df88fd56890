# SPDX-License-Identifier: BSD-3-Clause
# slurm_here.sh - read by tests under real Slurm: a cluster of one node on this machine.
# Its reader ends with 77 and the reason where that cannot be.
[ "$(id -u)" = 0 ] || { echo "starting slurmd needs root"; exit 77; }
for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null ||
        { echo "$program is not installed (Debian: slurm-wlm munge)"; exit 77; }
done
slurm_up=$(cd "${srcdir:-.}" && pwd)/tests/net/slurm-up

# start_slurm CPUS: clients find it by SLURM_CONF; stop_slurm belongs into a trap.
start_slurm() {
    SLURM_UP_LIMIT=$((15 * patience))
    export SLURM_UP_LIMIT
    SLURM_CONF=$("$slurm_up" -n 1 -c "$1") || exit 1
    export SLURM_CONF
}

stop_slurm() {
    "$slurm_up" stop "$SLURM_CONF"
}
