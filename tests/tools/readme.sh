#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The pages are right: README.md, HACKING.md and doc/*.md.  Each block of C compiles
# against what make install gives, each program of C or Python runs on three ranks, each
# block of commands runs; links lead somewhere; variables, functions and files exist; the picture
# shows what was measured.
#
# What a page says to this test stands in a comment above a block:
#   <!-- not run: WHY -->        its programs' options are compared with --help instead
#   <!-- fails -->               its last command shows an error
#   <!-- needs a GPU -->         the driver of tests/fake_cuda serves, where it is built
#   <!-- given: DECLARATIONS --> what a fragment of C uses
# Benchmarks and training are cut short: the commands are tried, not the machine.
. "${srcdir:-.}/tests/support/patience.sh"
. "${srcdir:-.}/tests/support/python.sh"
set -eu
source=$(cd "${srcdir:-.}" && pwd)
build=$PWD
prefix=$(sed -n 's/^prefix=//p' libcoll.pc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
driver=$build/tests/fake_cuda/.libs
pages="README.md HACKING.md $(cd "$source" && echo doc/*.md)"
status=0

wrong() { echo "$*"; status=1; }

# blocks PAGE FOLDER: each block of c, sh or python is FOLDER/N.c, N.sh or N.python, and what the comment
# above it says is in N.not, N.fails, N.gpu or N.given.
blocks() {
    awk -v to="$2" '
        /^```/ && on { close(file); on = 0; note = ""; next }
        on { print > file; next }
        /^<!--/ { note = $0; next }
        /^```(c|sh|python)$/ {
            on = 1
            name = sprintf("%s/%02d", to, ++n)
            file = name "." substr($0, 4)
            printf "" > file
            if (note ~ /^<!-- not run:/)
                print > (name ".not")
            if (note ~ /^<!-- needs a GPU/)
                print > (name ".gpu")
            if (note ~ /^<!-- fails/)
                print > (name ".fails")
            if (sub(/^<!-- given: */, "", note) && sub(/ *-->$/, "", note))
                print note > (name ".given")
            next
        }
        /^```/ { on = 1; file = "/dev/null"; next }
        NF { note = "" }' "$source/$1"
}

. "$source/tests/support/installing.sh"
install_in "$scratch/root" > "$scratch/log" 2>&1 ||
    { cat "$scratch/log"; echo "FAILED: make install"; exit 1; }
installed=$scratch/root$prefix

# cut PROGRAM OPTION...: run it with these options behind its own.
cut() {
    program=$1
    shift
    printf '#!/bin/sh\nexec "%s" "$@" %s\n' "$installed/bin/$program" "$*" \
        > "$scratch/bin/$program"
    chmod +x "$scratch/bin/$program"
}

mkdir "$scratch/bin"
for program in "$installed"/bin/*_bw "$installed"/bin/*_lat \
    "$installed"/bin/allreduce_repro; do
    cut "${program##*/}" -n 3 -w 1
done
has_trainer=no
if [ -x "$installed/bin/coll_train" ]; then
    has_trainer=yes
    # to read the real images takes longer than to train on a few; quickstart.sh does
    cut coll_train --limit-train 256 --limit-test 128 ${TEST_QUICK:+--dataset synthetic}
fi
# the compiler that the library was built by, under the pages' name; it must not find
# itself there
printf '#!/bin/sh\nPATH="%s"\nexec %s %s "$@"\n' "$PATH" "${CC:-cc}" "${TEST_LDFLAGS:-}" \
    > "$scratch/bin/gcc"
chmod +x "$scratch/bin/gcc"
PATH=$scratch/bin:$installed/bin:$PATH
LD_LIBRARY_PATH=$installed/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PKG_CONFIG_PATH=$installed/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch/root
export PATH LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

# compile FILE OUTPUT OPTION...
compile() {
    from=$1
    to=$2
    shift 2
    gcc -Wall -Wextra -Werror -I"$installed/include" "$@" "$from" \
        -L"$installed/lib" -Wl,-rpath,"$installed/lib" -lcoll -o "$to"
}

# program FILE: compile it and run it on three ranks; the page's commands find the
# first one of the page as first.c.
program() {
    [ -e first.c ] || cp "$1" first.c
    compile "$1" "${1%.c}" && timeout 60 collrun -n 3 "${1%.c}" > "${1%.c}.out" ||
        wrong "$page: a program fails: $(cat "$1")"
}

script() {
    [ -n "$python" ] && [ ! -e "${1%.python}.not" ] || return 0
    PYTHONPATH=$source/bindings/python PYTHONDONTWRITEBYTECODE=1 \
        timeout 60 collrun -n 3 "$python" "$1" > "$1.out" 2>&1 ||
        wrong "$page: a program fails: $(cat "$1" "$1.out")"
}

fragment() {
    {
        printf '#include <coll/coll.h>\n#include <stdio.h>\n'
        cat "${1%.c}.given"
        printf 'void fragment(void);\nvoid fragment(void)\n{\n'
        cat "$1"
        echo '}'
    } > "${1%.c}.whole.c"
    compile "${1%.c}.whole.c" /dev/null -c -Wno-unused ||
        wrong "$page: a fragment does not compile: $(cat "$1")"
}

# options FILE: each long option of our programs is in their --help.
options() {
    sed 's/#.*//' "$1" | while read -r line; do
        ours=
        for word in $line; do
            case $word in
            --) ;;
            --*) [ -z "$ours" ] || "$ours" --help | grep -q -e "${word%%=*}\([^a-z-]\|$\)" ||
                echo "$ours has no $word" ;;
            *) [ ! -x "$installed/bin/$word" ] || ours=$word ;;
            esac
        done
    done
}

# begin FILE: run the block, with what it prints in N.out.
begin() (
    [ ! -e "${1%.sh}.gpu" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$driver
    [ -e "${1%.sh}.fails" ] || set -- "$1" -e
    timeout 60 sh -u ${2:-} "$1" > "${1%.sh}.out" 2>&1
)

commands() {
    if [ "$has_trainer" = no ] && grep -q coll_train "$1"; then
        return
    elif ! command -v gnuplot > /dev/null && grep -q 'coll_plot\|svg' "$1"; then
        return
    elif [ -e "${1%.sh}.not" ] ||
        { [ -e "${1%.sh}.gpu" ] && [ ! -e "$driver/libcuda.so.1" ]; }; then
        bad=$(options "$1")
        [ -z "$bad" ] || wrong "$page: $bad"
    elif [ -e "${1%.sh}.fails" ]; then
        ! begin "$1" || wrong "$page: no error: $(cat "$1" "${1%.sh}.out")"
    else
        begin "$1" || wrong "$page: commands fail: $(cat "$1" "${1%.sh}.out")"
    fi
}

for page in $pages; do
    folder=$scratch/$(basename "$page" .md)
    mkdir "$folder"
    blocks "$page" "$folder"
    cd "$folder"
    ln -s "$build" build
    ln -s "$source/tests" "$source/trainer" .
    for block in "$folder"/[0-9]*.c "$folder"/[0-9]*.sh "$folder"/[0-9]*.python; do
        case $block in
        */'[0-9]*'* | *.whole.c) ;;
        *.sh) commands "$block" ;;
        *.python) script "$block" ;;
        *) if grep -q 'int main' "$block"; then program "$block"; else
            fragment "$block"
        fi ;;
        esac
    done
    cd "$build"
done
grep -q 'rank 2 of 3: the sum is 3$' "$scratch"/README/*.out ||
    wrong "README.md: the first program prints something else"

# The picture shows the result that it is said to show, where the same gnuplot drew it.
if command -v gnuplot > /dev/null; then
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s doc/drawn.svg
    picture=$source/doc/allreduce.svg
    [ "$(grep '<desc>' doc/drawn.svg)" != "$(grep '<desc>' "$picture")" ] ||
        cmp doc/drawn.svg "$picture" || wrong "make picture draws another $picture"
fi

# A link leads to a page, and to a heading of it.
anchors() {
    sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'
}
for page in $pages; do
    for link in $(grep -o '](\([^)]*\))' "$source/$page" | sed 's/](\(.*\))/\1/'); do
        case $link in
        *//*) continue ;;
        '#'*) target=$source/$page ;;
        *) target=$(dirname "$source/$page")/${link%%#*} ;;
        esac
        [ -e "$target" ] || wrong "$page: $link leads nowhere"
        case $link in
        *'#'*) anchors "$target" | grep -qx -e "${link#*#}" ||
            wrong "$page: $link has no such heading" ;;
        esac
    done
done

# Variables, functions and files exist.
coll_info --params > "$scratch/params"
header=$source/include/coll/coll.h
for page in $pages; do
    for word in $(grep -o '\<COLL_[A-Z0-9_]*[A-Z0-9]\>' "$source/$page" | sort -u); do
        case $word in
        COLL_LT_VERSION | COLL_HAVE_*) continue ;;
        esac
        grep -q "^$word=" "$scratch/params" ||
            grep -q "\<${word#COLL_}\>\|\<$word\>" "$header" ||
            wrong "$page: there is no $word"
    done
    for word in $(grep -o '`coll_[a-z_0-9]*[a-z]`' "$source/$page" | tr -d '`' | sort -u); do
        [ -x "$installed/bin/$word" ] || grep -q "\<$word\>" "$header" "$source/lib/trace/metrics.c" ||
            wrong "$page: there is no $word"
    done
    for path in $(grep -o '`\(lib\|transports\|tests\|tools\|benchmarks\|trainer\)/[a-z0-9_./-]*`' \
        "$source/$page" | tr -d '`' | sort -u); do
        [ -e "$source/$path" ] ||
            [ -n "$(find "$source/tests" -name "$(basename "$path")")" ] ||
            [ -x "$build/$path" ] || wrong "$page: there is no $path"
    done
    most=250
    [ "$page" != README.md ] || most=150
    [ "$(wc -l < "$source/$page")" -le $most ] || wrong "$page has over $most lines"
done
exit $status
