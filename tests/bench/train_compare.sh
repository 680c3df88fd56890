#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# benchmarks/train_compare: a table and JSON without PyTorch, and with something that
# answers like a python that has it; what is refused.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
program=${srcdir:-.}/benchmarks/train_compare
. "${srcdir:-.}/tests/support/program.sh"
[ -x trainer/coll_train ] || { echo "built without oneDNN"; exit 77; }
json=$scratch/result.json
unset COLL_ALGO COLL_TRANSPORTS COLL_BOOTSTRAP RANK WORLD_SIZE
TMPDIR=$scratch
export TMPDIR

# run ARGUMENTS...
run() {
    timeout 300 "$program" "$@" > "$out" 2> "$err" || fail "$*: exit status $?"
    grep -v 'the machine was busy before' "$err" | grep . && fail "$*: a word on stderr"
    [ -z "$(ls -d "$scratch"/tmp.* 2> /dev/null)" ] || fail "$*: left something"
}

refused 2 '--models is no option' --models cnn
refused 2 'it must be a whole number' --rounds 0
refused 2 'it must be MODEL:BATCH' --cells vgg:64
refused 2 'it must be a whole number' --cells cnn:x
refused 2 '--json needs a value' --json
refused 2 'it must be cpu or cuda' --device gpu
refused 2 'it must be f32, tf32 or bf16' --device cuda --precision f16
refused 2 'is of GPUs; add --device cuda' --precision bf16
refused 1 'no trainer/coll_train' --build "$scratch"
refused 1 'cannot write' --json "$scratch/none/x.json"

# alone ARGUMENTS...: rows of coll_train alone.
alone() {
    run "$@" --quick --cells net:16 --procs 1,2 --json "$json"
    grep -q '^no python with torch was found' "$out" || fail "its absence is not said"
    [ "$(grep -c '^net  *16  *[12]  *[0-9.]*  *[0-9.]*  *[0-9.]*%  *[0-9]*$' \
        "$out")" = 2 ] || fail "not two rows of six figures"
    grep -q '"torch": null' "$json" || fail "JSON does not say that there is no torch"
}

printf '#!/bin/sh\necho no torch >&2\nexit 1\n' > "$scratch/python3"
chmod +x "$scratch/python3"
refused 1 'runs no torch: no torch' --python "$scratch/python3"
alone --python none
if ! /usr/bin/python3 -c 'import torch, numpy' 2> /dev/null; then
    full_path=$PATH
    PATH=$scratch:$PATH # its python3 has none either
    alone
    PATH=$full_path
fi

# A python that says what it was asked for, and is four and two times as slow as ten
# thousand images a second.
cat > "$scratch/python" << END
#!/bin/sh
[ "\$2" != --version ] || { echo 9.9; exit 0; }
echo "\$RANK of \$WORLD_SIZE: \$*" >> $scratch/asked
speed=2500
case \$* in *--tuned*)
    [ "\$MALLOC_MMAP_MAX_" = 0 ] || exit 1
    speed=5000 ;;
esac
[ "\$RANK" != 0 ] || echo '{"images_per_s": '\$speed', "loss": 2.3, "params": 1, "max_rss_mib": 245.5}'
END
chmod +x "$scratch/python"
run --quick --cells net:16 --rounds 3 --procs 2 --python "$scratch/python" --json "$json"
grep -q '^PyTorch 9.9, one thread' "$out" || fail "its version is not said"
grep -q '^net  *16  *2 .* 2500.0  *24[56]  *5000.0  *24[56]  *[0-9.]*  *[0-9.]*$' "$out" ||
    fail "no row of both"
[ "$(wc -l < "$scratch/asked")" = 12 ] || fail "not 3 rounds x 2 forms x 2 ranks"
grep -q '^1 of 2: .*--model net --batch 16 --steps 16 --meet .* --opt sgd' \
    "$scratch/asked" || fail "asked for something else"
# Ratios are what they are called.
tr -d '\n' < "$json" | sed 's/[{},]/\n/g' | awk -F'": ' '
    /libcoll"/ {ours = 1} /"torch": *$/ {ours = 0}
    /images_per_s/ && ours {speed = $2; ours = 0}
    /ratio_torch/ {plain = $2} /ratio_tuned/ {tuned = $2}
    END {exit !(speed > 0 && plain / tuned > 1.99 && plain / tuned < 2.01 &&
                plain * 2500 / speed > 0.99 && plain * 2500 / speed < 1.01)}' ||
    fail "the ratios are others"
printf '#!/bin/sh\n[ "$2" = --version ] && echo 9.9 && exit\necho bad luck >&2; exit 3\n' \
    > "$scratch/python"
timeout 300 "$program" --quick --procs 1 --python "$scratch/python" > "$out" 2> "$err"
[ $? = 1 ] || fail "a run that fails: exit status"
grep -q 'train_compare: torch cnn 64 1 failed: ' "$err" || fail "it is not said what failed"
if [ -n "$(command -v python3)" ]; then
    for file in benchmarks/train_torch.py trainer/rng.py; do
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' \
            "${srcdir:-.}/$file" || fail "$file is no python"
    done
fi
echo "all checks passed"
