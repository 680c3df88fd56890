# SPDX-License-Identifier: BSD-3-Clause
# program.awk - what a program says to --help as a manual page of section 1.
#
#   PROGRAM --help | awk -v date=D -v out=FOLDER -v name=PROGRAM -f mdoc.awk -f program.awk
#
# The text is "Usage: PROGRAM ...", a sentence, paragraphs, and options: lines that are
# indented by 1 to 8 blanks, begin with '-' and have two blanks before what they say.
# Lines below an option that are indented belong to it.  A line before options that ends
# with a colon is their heading.  What else is indented is shown as it is.

BEGIN {
    page = out "/man1/" name ".1"
    own[name] = 1
    state = "usage"
}

state == "usage" && (/^[Uu]sage: / || /^ /) {
    sub(/^[Uu]sage: /, "")
    sub(/^ +(or: +)?/, "")
    usage[++n_usage] = $0
    next
}

state == "usage" { state = "summary" }

state == "summary" && NF { summary = summary (summary == "" ? "" : " ") $0; next }

state == "summary" {
    begin_page()
    state = ""
    next
}

/^ *$/ { end_all(); next }

/^ +-/ && match($0, /-/) < 10 && !in_code { begin_option($0); next }

/^ / && in_option { text = text " " $0; next }

/^ / {
    if (!in_code) {
        flush_paragraph()
        put(".Bd -literal -offset indent")
    }
    in_code = 1
    put_line(escape($0))
    next
}

{
    if (in_code || in_option)
        end_all()
    text = text " " $0
}

END {
    end_all()
    end_options()
    put(".Sh SEE ALSO")
    write_paragraph((name == "collrun" ? "coll_info(1)" : "collrun(1)") \
        ", coll-variables(7), libcoll(7)")
}

function begin_page(    first, i) {
    first = summary
    if (match(first, /[.:;] /))
        first = substr(first, 1, RSTART - 1)
    while (length(first) > 70 && match(first, /,[^,]*$/)) # it has to be one line
        first = substr(first, 1, RSTART - 1)
    write_head(name, 1, first)
    put(".Sh SYNOPSIS")
    for (i = 1; i <= n_usage; i++)
        write_usage(usage[i])
    put(".Sh DESCRIPTION")
    write_paragraph(summary)
}

function write_usage(text) {
    if (sub("^" name " ", "", text))
        put(".Nm")
    write_paragraph(text)
}

function begin_option(text_of_line,    at) {
    flush_option()
    if (text ~ /^ [^.]*:$/)
        write_heading()
    flush_paragraph()
    if (!in_list)
        begin_list()
    in_list = in_option = 1
    sub(/^ +/, "", text_of_line)
    at = match(text_of_line, /  +/)
    if (!at)
        at = end_of_term(text_of_line)
    term = substr(text_of_line, 1, at - 1)
    text = substr(text_of_line, at)
}

# "Ranks and hosts:" before the options of that kind
function write_heading() {
    end_options()
    put(".Pp\n.Sy " quote(substr(text, 2, length(text) - 2)) " :")
    text = ""
}

# Where no two blanks end the option: behind its last word that looks like one.
function end_of_term(text,    words, n, i, at) {
    n = split(text, words, " ")
    at = 1
    for (i = 1; i <= n && (words[i] ~ /^[-[A-Z]/ || words[i] ~ /\|/); i++)
        at += length(words[i]) + 1
    return i > n ? length(text) + 1 : at - 1
}

function flush_option() {
    if (!in_option)
        return
    put(".It Sy " quote(term))
    write_paragraph(text)
    text = ""
    in_option = 0
}

function flush_paragraph() {
    if (text == "")
        return
    end_options()
    if (sub(/^ Exit status: /, "", text)) {
        put(".Sh EXIT STATUS")
        text = toupper(substr(text, 1, 1)) substr(text, 2)
    } else
        put(".Pp")
    write_paragraph(text)
    text = ""
}

function end_options() {
    if (in_list)
        end_list()
    in_list = 0
}

# A blank line ends a paragraph, an option and what is shown as it is.
function end_all() {
    flush_option()
    flush_paragraph()
    if (in_code)
        put(".Ed")
    in_code = 0
}
