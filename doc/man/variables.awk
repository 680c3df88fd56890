# SPDX-License-Identifier: BSD-3-Clause
# variables.awk - the table of lib/util/param.h as coll-variables(7).
#
#   awk -v date=D -v out=FOLDER -f mdoc.awk -f variables.awk lib/util/param.h
#
# An entry is X(NAME, KIND, "default", "words" or NULL, "what").  It may go over several
# lines, and so may a text, as strings side by side.

BEGIN {
    kinds["PARAM_INT"] = "a whole number"
    kinds["PARAM_SECONDS"] = "seconds"
    kinds["PARAM_BYTES"] = "bytes; K, M and G are powers of 1024"
    kinds["PARAM_TEXT"] = ""
    own["coll-variables"] = 1
    page = out "/man7/coll-variables.7"
    write_head("coll-variables", 7, "environment variables of libcoll")
    put(".Sh DESCRIPTION")
    write_text("libcoll and its programs read these variables of the environment. " \
        "An empty variable counts as one that is not set. " \
        "A value that is not allowed is an error when a communicator is made, and the " \
        "message names the variable.\n" \
        "The command coll_info --params prints the values that are in force.")
    begin_list()
}

/^#define COLL_PARAM_MAP/ { in_table = 1; next }

in_table {
    entry = entry $0
    sub(/ *\\$/, "", entry)
    if (/"\) *\\?$/) {
        write_entry(entry)
        entry = ""
    }
    if (!/\\$/)
        in_table = 0
}

# The strings of an entry, from the first quotation mark on; those side by side are one.
function write_entry(entry,    name, head, kind, words, what) {
    gsub(/" +"/, "", entry)
    match(entry, /X\([^"]*/)
    split(substr(entry, RSTART + 2, RLENGTH - 2), head, /, */)
    entry = substr(entry, RSTART + RLENGTH)
    name = "COLL_" head[1]
    kind = head[2]
    standard = take_string(entry)
    entry = rest
    words = entry ~ /^, *NULL/ ? "" : take_string(entry)
    if (words != "")
        entry = rest
    what = take_string(entry)
    put(".It Ev " quote(name))
    write_paragraph(toupper(substr(what, 1, 1)) substr(what, 2) ".")
    if (words != "") {
        gsub(/\|/, ", ", words)
        write_paragraph("Values: " words ".")
    } else if (kinds[kind] != "")
        write_paragraph("Value: " kinds[kind] ".")
    if (standard != "")
        write_paragraph("Default: " standard ".")
}

# The next string; what follows it is in `rest`.
function take_string(text,    string) {
    match(text, /"[^"]*"/)
    string = substr(text, RSTART + 1, RLENGTH - 2)
    rest = substr(text, RSTART + RLENGTH)
    return string
}

END {
    end_list()
    put(".Sh SEE ALSO")
    write_paragraph("coll_info(1), coll_tune(1), collrun(1), libcoll(7)")
}
