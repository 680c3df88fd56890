#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# collrun.sh - `collrun --hosts` by each launcher that is here: ranks are where they were
# asked to be, or there are none, and a program's name alone is found by this PATH.
. "${srcdir:-.}/tests/net/world.sh"
have() { command -v "$1" > /dev/null; }
grep -q 'define COLL_HAVE_PMIX 1' config.h || skip "built without PMIx"
hosts_up 2
SLURM_CONF=
finish_slurm() {
    [ -z "$SLURM_CONF" ] || "$net/slurm-up" stop "$SLURM_CONF"
    finish
}
trap finish_slurm EXIT
COLL_LOG=comm:info
export COLL_LOG

# A program that only this PATH has, and that says where its rank is.
mkdir "$dir/bin"
cat > "$dir/bin/say_where" << END
#!/bin/sh
echo "rank \${PMIX_RANK:-\$PMI_RANK} on \$(cat /proc/sys/kernel/hostname)"
exec "$probe" split
END
chmod +x "$dir/bin/say_where"

# As ssh does it: nothing goes along but what is told.
cat > "$dir/ssh" << END
#!/bin/sh
exec env -i TEST_HOSTS="$folder" HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin \
    "$net/rsh" "\$@"
END
chmod +x "$dir/ssh"

# placed NAME LIST COMMAND...: with --hosts LIST, is each rank where it says?
placed() {
    name=$1 list=$2
    shift 2
    on h1 env PATH="$dir/bin:$PATH" timeout $((60 * patience)) "$@" \
        --hosts "$list" say_where > "$dir/placed.0" 2>&1
    status=$? r=0
    for item in $(echo "$list" | tr , ' '); do
        n=${item#*:}
        [ "$n" != "$item" ] || n=1
        for _ in $(seq "$n"); do
            has_lines 1 "rank $r on ${item%:*}\$" placed || status="$status, not rank $r"
            r=$((r + 1))
        done
    done
    if [ "$status" = 0 ] && has_lines $r 'rank . on' placed &&
        has_lines $r 'all is well' placed; then
        ok "$name: $list"
    else
        fail "$name: $list: status $status" "$dir/placed.0"
    fi
}

# copied NAME COMMAND...: the same with a file of each rank on its host, which is this one's
copied() {
    name=$1
    shift
    rm -rf "$dir/files"
    placed "$name, with files" h2:1,h1:3 "$@" --output-filename "$dir/files" -x LD_LIBRARY_PATH
    for r in 0 1 2 3; do
        host=h1
        [ $r != 0 ] || host=h2
        if grep -q "^rank $r on $host\$" "$dir/files/rank.$r/stdout"; then
            ok "$name: the file of rank $r"
        else
            fail "$name: the file of rank $r" "$dir/files/rank.$r/stdout"
        fi
    done
}

# refused NAME WORDS COMMAND...: does it say so, and start nothing?
refused() {
    name=$1 words=$2
    shift 2
    on h1 env PATH="$dir/bin:$PATH" timeout $((60 * patience)) "$@" \
        > "$dir/refused.0" 2>&1
    status=$?
    if [ $status != 0 ] && has_lines 0 'rank . on' refused && has_line "$words" refused; then
        ok "$name is refused"
    else
        fail "$name is not refused, status $status" "$dir/refused.0"
    fi
}

collrun=$PWD/tools/collrun
if have mpirun && mpirun --version 2>&1 | grep -q 'Open MPI'; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_plm_rsh_agent=$dir/ssh OMPI_MCA_oob_tcp_if_include=eth0
    OMPI_MCA_btl_tcp_if_include=eth0
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_plm_rsh_agent
    PRTE_MCA_plm_ssh_agent=$dir/ssh # Open MPI 5
    export OMPI_MCA_oob_tcp_if_include OMPI_MCA_btl_tcp_if_include PRTE_MCA_plm_ssh_agent
    placed "row 25: mpirun" h1:2,h2:2 "$collrun"
    placed mpirun h2:1,h1:3 "$collrun"
    copied mpirun "$collrun"
else
    echo "left out: mpirun (Debian: openmpi-bin)"
fi

# hydra as mpirun, which Debian's is where there is no Open MPI
hydra=$(command -v mpiexec.hydra || command -v mpiexec.mpich)
if [ "$hydra" ]; then
    mkdir "$dir/hydra"
    printf '#!/bin/sh\nexec %s "$@"\n' "$hydra" > "$dir/hydra/mpirun"
    chmod +x "$dir/hydra/mpirun"
    # shellcheck disable=SC2086
    for list in h1:2,h2:2 h2:1,h1:3; do
        placed "row 25: hydra" $list env PATH="$dir/hydra:$dir/bin:$PATH" HYDRA_IFACE=eth0 \
            HYDRA_LAUNCHER_EXEC="$dir/ssh" "$collrun"
    done
    copied hydra env PATH="$dir/hydra:$dir/bin:$PATH" HYDRA_IFACE=eth0 \
        HYDRA_LAUNCHER_EXEC="$dir/ssh" "$collrun"
else
    echo "left out: hydra (Debian: mpich)"
fi

slurm() {
    for program in munged slurmctld slurmd srun; do
        PATH=$PATH:/usr/sbin have $program || return 1
    done
    SLURM_CONF=$(SLURM_UP_LIMIT=$((15 * patience)) "$net/slurm-up" -c 4 -H "$folder") || return 1
    export SLURM_CONF
    on h1 srun --mpi=list 2>&1 | grep -q pmix
}
if slurm; then
    allocation="salloc --quiet -N 2 --ntasks-per-node=2"
    # shellcheck disable=SC2086
    {
        placed "row 25: srun in 2 + 2" h2:2,h1:2 $allocation "$collrun"
        placed "srun in 2 + 2" h1:3,h2:1 $allocation "$collrun"
        copied srun $allocation "$collrun"
        placed "srun in 2 + 2" h2,h1:2 salloc --quiet -N 2 -n 4 "$collrun"
        refused "a host that is not allocated" 'not available' $allocation "$collrun" --hosts h1:2,h3:2 say_where
        refused "more ranks than there is room for" '[Mm]ore\|exceed\|not available\|Unable' \
            $allocation "$collrun" --hosts h1:2,h2:9 say_where
    }
else
    echo "left out: Slurm (Debian: slurm-wlm munge libpmix2)"
fi
the_end
