# SPDX-License-Identifier: BSD-3-Clause
# trainer_killed.sh - read by tests, after trainer_program.sh: runs of coll_train --elastic
# whose ranks are killed at any moment.
n_killed=0

# has_gone_on LINES: all four train, says a line after so many, or the run is over.
has_gone_on() {
    tail -n +$(($1 + 1)) out | grep -q ': 4 go on' || ! kill -0 "$job" 2> /dev/null
}

has_begun() {
    grep -q '^Epoch 1' out || ! kill -0 "$job" 2> /dev/null
}

# kill_some: one to three of the ranks.  The first child of collrun is its guard.
kill_some() {
    lines=$(wc -l < out)
    sleep "0.$(shuf -i 10-99 -n 1)"
    for pid in $(cut -d ' ' -f 2- "/proc/$job/task/$job/children" 2> /dev/null |
        tr ' ' '\n' | sed '/^$/d' | shuf -n "$(shuf -i 1-3 -n 1)"); do
        kill -KILL "$pid" 2> /dev/null && n_killed=$((n_killed + 1))
    done
    await 200 has_gone_on "$lines" || fail "the ranks do not go on"
}

# kill_in_a_run FLAG...: four ranks train, are killed while they do, and end well.
kill_in_a_run() {
    : > out
    "$collrun" --min-np 1 --max-restarts 1000 -n 4 "$train" --elastic --json r.json "$@" > out 2> err &
    job=$!
    trap 'kill "$job" 2> /dev/null; rm -rf "$scratch"' EXIT
    await 100 has_begun || fail "the ranks do not begin"
    while kill -0 $job 2> /dev/null; do
        kill_some
    done
    wait $job || fail "status $?, after $n_killed kills"
    trap 'rm -rf "$scratch"' EXIT
}

# all_count EPOCHS IMAGES: so many of each epoch count.
all_count() {
    [ "$(grep -o "\"images\":$2[,}]" r.json | wc -l)" = "$1" ] ||
        fail "not $2 images in each epoch: $(grep -o '"images":[0-9]*' r.json)"
}

# kill_ranks N EPOCHS IMAGES FLAG...: in as many runs as it takes to kill N ranks; a run that
# was over before is made longer.  All images count in each, and judge_run judges the rest.
kill_ranks() {
    most=$1 epochs=$2 n_images=$3
    shift 3
    while [ $n_killed -lt "$most" ]; do
        n_before=$n_killed
        kill_in_a_run --epochs "$epochs" "$@"
        all_count "$epochs" "$n_images"
        judge_run
        [ $n_killed -gt $n_before ] || epochs=$((2 * epochs))
    done
}

judge_run() { :; }
