# SPDX-License-Identifier: BSD-3-Clause
# limits.sh - read by tests that set limits of the library for the programs they run;
# $scratch is a folder of the test's own.

# limits NAME=SIZE...: write a tuning file with these limits, and print its name.
limits() {
    list=
    for limit in "$@"; do
        list="$list${list:+, }\"${limit%%=*}\": \"${limit#*=}\""
    done
    echo "{\"version\": 1, \"limits\": {$list}}" > "$scratch/limits-$*.json"
    echo "$scratch/limits-$*.json"
}
