#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# vanish.sh - a host of three is cut off, so that what is sent to it is lost in silence:
# each rank elsewhere hears within some 10 s that it was that one's rank, wherever it
# stands among the ranks and whatever the job is at; and never that it was another.
#
# All jobs live on the same three hosts, of which one, h3, vanishes once.
. "${srcdir:-.}/tests/net/world.sh"
hosts_up 3

# Which host each rank of a job is on, where the lost one is the first, in the middle, last.
places="0:h3:h1:h2 1:h1:h3:h2 2:h1:h2:h3"
modes="idle busy late"

# host_of PLACE RANK
host_of() { echo "$1" | cut -d : -f $(($2 + 2)); }

address_of() { echo "198.18.0.${1#h}"; }

# start MODE PLACE RANK...: those ranks of that job.
start() {
    mode=$1 place=$2
    shift 2
    for r in "$@"; do
        rank "$(host_of "$place" "$r")" "$mode-${place%%:*}" "$r" 3 \
            "$(address_of "$(host_of "$place" 0)"):$(port_of "$mode" "$place")" \
            "$probe" "${mode%-*}"
    done
}

# A port of its own for each job.
port_of() {
    case $1 in idle) at=0 ;; busy) at=10 ;; late) at=20 ;; join) at=30 ;; *) at=40 ;; esac
    echo $((6000 + at + ${2%%:*}))
}

# has_called HOST PORT: is somebody connected to that port?
has_called() {
    "$net/hosts" exec "$folder" "$1" ss -Htn state established "( sport = :$2 )" | grep -q .
}

# hears JOB RANK LOST: does it name the lost rank, its host, and nobody else, in time?
hears() {
    file=$dir/$1.$2
    line=$(grep 'status -4 ' "$file" | head -n 1)
    after=$(echo "$line" | sed 's/.* after \([0-9]*\)\..*/\1/')
    case $line in
    *"rank $3 "*h3*"fallen silent"* | *"rank $3 "*198.18.0.3*"fallen silent"*)
        ok "$1: rank $2 hears of rank $3 after $after s" ;;
    *) fail "$1: rank $2 does not hear that rank $3 on h3 has fallen silent" "$dir/$1".? ;;
    esac
}

for place in $places; do
    for mode in $modes; do
        start "$mode" "$place" 0 1 2
    done
done
# the third rank of these does not come: the others wait for it with rank 0
start join 0:h3:h1:h2 0 1
start join 1:h1:h3:h2 0 1
for place in $places; do
    for mode in $modes; do
        await 60 has_lines 3 ': up$' "$mode-${place%%:*}" ||
            fail "the job did not form" "$dir/$mode-${place%%:*}".?
    done
done
await 60 has_called h1 "$(port_of join 1)"
sleep 1 # the questions of the beginning have been answered
: > "$CUT"
"$net/hosts" link "$folder" h3 down
# who begins only now calls a host that does not answer
start call 0:h3:h1:h2 1 2

for place in $places; do
    for mode in $modes; do
        job=$mode-${place%%:*}
        await 60 has_lines 3 "$mode: status" "$job"
        for r in 0 1 2; do
            [ "$(host_of "$place" $r)" = h3 ] || hears "$job" $r "${place%%:*}"
        done
    done
done
await 60 has_lines 2 'join: status' join-0
await 60 has_lines 2 'join: status' join-1
await 60 has_lines 2 'join: status' call-0
hears join-0 1 0
hears join-1 0 1
hears call-0 1 0
hears call-0 2 0
for place in $places; do
    for mode in $modes; do
        job=$mode-${place%%:*}
        await 30 has_lines 3 ' end: status' "$job" ||
            fail "$job: the communicator does not end" "$dir/$job".?
    done
done
the_end
