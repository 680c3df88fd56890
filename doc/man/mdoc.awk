# SPDX-License-Identifier: BSD-3-Clause
# mdoc.awk - text as mdoc(7), for the scripts that write manual pages.
#
# write_text(text) takes paragraphs: lines, each a whole paragraph.  A paragraph that
# begins with ITEM is "ITEM term: text", and one that begins with CODE is shown as it is.
# A word such as coll_start() or collrun(1) becomes a reference to its page.
#
# The lines go to the file named by `page`.  The variable date, which pages show, is
# given by -v.

BEGIN {
    ITEM = "\001"
    CODE = "\002"
}

function put(text) { print text > page }

# names: one or more, with blanks between
function write_head(names, section, what,    list) {
    split(names, list, " ")
    put(".\\\" Made by make: see doc/man in the sources of libcoll.")
    put(".Dd " date)
    put(".Dt " toupper(list[1]) " " section)
    put(".Os")
    put(".Sh NAME")
    gsub(/ /, " ,\n.Nm ", names)
    put(".Nm " names)
    put(".Nd " as_title(what))
}

# A sentence as a title: without its full stop, and without its capital unless the
# word is an abbreviation.
function as_title(text) {
    sub(/\.$/, "", text)
    if (text ~ /^[A-Z][a-z ]/)
        text = tolower(substr(text, 1, 1)) substr(text, 2)
    return escape(text)
}

# Text that is shown as it is.
function escape(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text
}

# A line that begins with a full stop would be a macro.
function put_line(text) { put((text ~ /^[.']/ ? "\\&" : "") text) }

# One argument of a macro.
function quote(text) {
    text = escape(text)
    gsub(/"/, "\\(dq", text)
    return "\"" text "\""
}

function flush_line() {
    if (line != "")
        put_line(line)
    line = ""
}

# "coll_start()," or "(collrun(1)": a reference, which stands on a line of its own.
# Functions of other libraries, and the page itself, are names.
function write_reference(word,    name, section, before, after, macro) {
    before = word ~ /^\(/ ? "No ( Ns " : ""
    sub(/^\(/, "", word)
    after = word
    sub(/^[^()]+\([137]?\)/, "", after)
    name = substr(word, 1, length(word) - length(after))
    section = substr(name, length(name) - 1, 1)
    sub(/\(.*/, "", name)
    if (section == "(")
        macro = name ~ /^coll_/ && !(name in own) ? "Xr " name " 3" : "Fn " name
    else
        macro = name in own ? "Nm " name : "Xr " name " " section
    gsub(/./, " &", after)
    flush_line()
    put("." before macro after)
}

# Filled lines; a sentence begins a line.
function write_paragraph(text,    words, n, i) {
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) {
        if (words[i] ~ /^\(?[A-Za-z_-]+\([137]?\)[.,;:)]*$/) {
            write_reference(words[i])
            continue
        }
        if (words[i] ~ /^[("'[]*-|\\/)
            words[i] = escape(words[i])
        if (length(line) + length(words[i]) > 78)
            flush_line()
        line = line (line == "" ? "" : " ") words[i]
        if (words[i] ~ /[.!?][)"']?$/)
            flush_line()
    }
    flush_line()
}

function begin_list() { put(".Bl -tag -width Ds") }
function end_list() { put(".El") }

function write_item(text,    at) {
    at = index(text, ": ")
    put(".It Sy " quote(substr(text, 1, at - 1)))
    write_paragraph(substr(text, at + 2))
}

# begin_kind and end_kind open and close what items and code stand in.
function begin_kind(kind) {
    if (kind == ITEM)
        begin_list()
    else if (kind == CODE)
        put(".Bd -literal -offset indent")
}

function end_kind(kind) {
    if (kind == ITEM)
        end_list()
    else if (kind == CODE)
        put(".Ed")
}

function kind_of(paragraph,    first) {
    first = substr(paragraph, 1, 1)
    return first == ITEM || first == CODE ? first : ""
}

function write_text(text,    paragraphs, n, i, kind, last) {
    n = split(text, paragraphs, "\n")
    last = ""
    for (i = 1; i <= n; i++) {
        kind = kind_of(paragraphs[i])
        if (kind != last) {
            end_kind(last)
            begin_kind(kind)
        }
        if (kind == ITEM)
            write_item(substr(paragraphs[i], 2))
        else if (kind == CODE)
            put_line(escape(substr(paragraphs[i], 2)))
        else {
            if (i > 1)
                put(".Pp")
            write_paragraph(paragraphs[i])
        }
        last = kind
    }
    end_kind(last)
}
