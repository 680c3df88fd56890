#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What fits a head: files of at most 600 lines (coll.h apart: it is the whole API, and four
# of its five lines are the text of the manual pages), folders of lib of at most 6,500, types
# of at most 25 members, internal functions of at most 5 parameters, headers that pull in
# fewer than 15 others; what GPUs run (CUDA C++) apart.
cd "${srcdir:-.}" || exit 1
status=0
wrong() { echo "$*"; status=1; }

# One member for each option or each rank of a job: collrun's and the trainer's command
# lines.
large="struct:args struct:options"
# Parameters as others give them: the callbacks of PMIx and UCX, coll.h's reductions.
large="$large function:lost function:answered function:coll__ucx_arrived function:call_own"
# A transport's send of one message: its values come in registers.
large="$large function:send_one"
# A number of a row, as its caller writes it: key, head, width, digits, value.
large="$large function:row_real function:add_real"

# but for what is generated
sources() {
    find lib transports tools trainer benchmarks \( -name '*.c' -o -name '*.h' \) ! -name cuda_image.c
}

for file in $(sources) $(find tests bindings -name '*.[ch]'); do
    lines=$(wc -l < "$file")
    [ "$lines" -le 600 ] || wrong "$file has $lines lines; 600 at most"
done
for folder in lib/*/; do
    lines=$(find "$folder" -name '*.[ch]' ! -name cuda_image.c -exec cat {} + | wc -l)
    [ "$lines" -le 6500 ] || wrong "$folder has $lines lines; 6,500 at most"
done

# "HEADER N": how many project headers it pulls in, directly or through others.
pulls() {
    find include lib transports tools trainer benchmarks -name '*.h' -exec awk '
    FNR == 1 { headers[FILENAME] }
    /^#include "/ {
        split($0, words, "\"")
        includes[FILENAME] = includes[FILENAME] " " words[2]
    }
    function pull(header,    i, n, at, words) {
        n = split(includes[header], words, " ")
        for (i = 1; i <= n; i++) {
            at = words[i] in headers ? words[i] : "include/" words[i]
            if (at in headers && !(at in seen)) {
                seen[at]
                n_seen++
                pull(at)
            }
        }
    }
    END {
        for (header in headers) {
            split("", seen)
            n_seen = 0
            pull(header)
            print header, n_seen
        }
    }' {} +
}

pulled=$(pulls)
[ "$(echo "$pulled" | wc -l)" -gt 150 ] || wrong "few headers were found"
while read -r header n; do
    [ "$n" -lt 15 ] || wrong "$header pulls in $n other headers; fewer than 15 are allowed"
done << END
$pulled
END

# Without comments and strings: "struct NAME MEMBERS FILE", "function NAME PARAMETERS FILE".
measure() {
    for file in $(sources); do
        awk -v file="$file" '
        { text = text $0 "\n" }
        function count(list, separator,    n, at) {
            n = 0
            for (at = 1; at <= length(list); at++)
                if (substr(list, at, 1) == separator)
                    n++
            return n
        }
        # Members of the type whose braces begin behind `from`, those of unnamed types too.
        function members(from,    depth, at, c, n, round, is_empty) {
            depth = 1
            is_empty = 1
            for (at = from; depth && at <= length(text); at++) {
                c = substr(text, at, 1)
                depth += (c == "{") - (c == "}")
                round += (c == "(") - (c == ")")
                if (c == ";" || (c == "," && !round))
                    n++
            }
            return n
        }
        END {
            gsub(/"([^"\\\n]|\\.)*"/, "", text)
            while ((at = index(text, "/*")) > 0) {
                rest = substr(text, at + 2)
                end = index(rest, "*/")
                text = substr(text, 1, at - 1) substr(rest, end + 2)
            }
            gsub(/__attribute__\(\([^()]*(\([^()]*\))?[^()]*\)\)[ \n]*/, "", text)
            rest = text
            from = 0
            while (match(rest, /(^|\n)struct [a-z_]+ \{/)) {
                split(substr(rest, RSTART, RLENGTH), words, " ")
                from += RSTART + RLENGTH - 1
                print "struct", words[2], members(from + 1), file
                rest = substr(rest, RSTART + RLENGTH)
            }
            rest = text
            while (match(rest, /\n[A-Za-z][A-Za-z_0-9 *\n]*[ *\n][a-z_0-9]+\([^;{}]*\)[ \n]*\{/)) {
                words[1] = substr(rest, RSTART, RLENGTH)
                name = words[1]
                sub(/\(.*/, "", name)
                sub(/.*[ *\n]/, "", name)
                sub(/^[^(]*\(/, "", words[1])
                gsub(/\([^()]*\)/, "", words[1])
                print "function", name, count(words[1], ",") + 1, file
                rest = substr(rest, RSTART + RLENGTH)
            }
        }' "$file"
    done
}

measured=$(measure)
[ "$(echo "$measured" | grep -c '^struct')" -gt 400 ] || wrong "few structs were found"
[ "$(echo "$measured" | grep -c '^function')" -gt 3000 ] || wrong "few functions were found"
while read -r kind name n file; do
    most=25
    [ "$kind" = struct ] || most=5
    case " $large " in *" $kind:$name "*) continue ;; esac
    case $file in lib/api/*) continue ;; esac # coll.h's functions
    [ "$n" -le $most ] || wrong "$kind $name has $n parts; $most at most ($file)"
done << END
$measured
END
[ $status = 0 ] && echo "all files, folders, types, functions and headers fit a head"
exit $status
