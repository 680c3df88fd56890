# SPDX-License-Identifier: BSD-3-Clause
# functions.awk - coll.h as manual pages: one in section 3 for each comment with its
# declarations, and libcoll(7).  For each further name of a page it prints the name of a
# file and of the page that it is to be a link to.
#
#   awk -v date=D -v out=FOLDER -f mdoc.awk -f functions.awk coll.h cuda.h
#
# A comment is a summary, paragraphs, and labels such as "Errors:".  A comment
# "/* ---- title ---- *" begins a section.  What a section says under a label holds for
# its functions too.  The lists X(NAME, ...) are those of their sections.

BEGIN {
    n_labels = split("prose Shapes Result Ownership Errors Threads Cost", labels, " ")
    split("DESCRIPTION:ARGUMENTS:RETURN VALUES:OWNERSHIP:ERRORS:THREADS:COST", titles, ":")
}

# ---- reading ----------------------------------------------------------------------

FNR == 1 { header = FILENAME; sub(/.*\/include\//, "", header); next }

/^\/\* ---- / {
    begin_comment("section " ++n_sections)
    title = $0
    gsub(/^\/\* ---- | -+ \*\/?$/, "", title)
    sections[n_sections] = title
    in_comment = !/\*\/$/
    next
}

/^\/\* X\(/ { next } # how to read a list

/^    X\(/ { read_list_line($0); next }

/^\/\* / {
    begin_comment(FNR == 2 ? "file " header : "page " (n_pages + 1))
    read_comment_line($0)
    next
}

in_comment { read_comment_line($0); next }

/^ *$/ || /^\{/ { end_declaration(); next }

place ~ /^page/ { declaration = declaration $0 "\n" }

function begin_comment(where,    i) {
    place = where
    label = "prose"
    is_new = 1 # the next words begin a paragraph
    in_comment = 1
    for (i = 1; i <= n_labels + 1; i++)
        texts[place, i > n_labels ? "See" : labels[i]] = ""
}

function read_comment_line(text) {
    in_comment = !sub(/ *\*\/$/, "", text)
    text = substr(text, 4)
    if (text == "")
        is_new = 1
    else if (text ~ /^    / && label == "prose")
        append("\n", CODE substr(text, 5))
    else
        read_words(text)
}

function read_words(text) {
    if (match(text, /^[A-Z][a-z]+: +/) && RLENGTH == 11) {
        label = substr(text, 1, index(text, ":") - 1)
        text = substr(text, 12)
        is_new = 1
    }
    sub(/^ +/, "", text)
    if (text ~ /^(COLL_ERR_[A-Z]+, )*(COLL_ERR_[A-Z]+|Any other):( |$)/)
        append("\n", ITEM text)
    else
        append(is_new ? "\n" : " ", text)
    is_new = 0
}

function append(separator, text) {
    if (texts[place, label] != "")
        text = texts[place, label] separator text
    texts[place, label] = text
}

# X(ERR_PEER, -4, "text"): a name, and what is said of it
function read_list_line(text,    args, n) {
    gsub(/^ *X\(|\)[ \\]*$|"/, "", text)
    n = split(text, args, /, */)
    if (n == 3 && args[3] ~ /^[0-9]/)
        args[3] = args[3] (args[3] == 1 ? " byte" : " bytes")
    lists[n_sections] = lists[n_sections] (lists[n_sections] ? "\n" : "") \
        ITEM "COLL_" args[1] ": " args[2] (n < 3 ? "" : ", " args[3])
}

# A page has the names of what its comment stands before.
function end_declaration(    text, name, found) {
    text = declaration
    if (text ~ /^(struct|enum) /) {
        split(text, found, " ")
        name = found[2]
    } else
        while (match(text, /coll_[a-z_]+\(/)) {
            name = name (name ? " " : "") substr(text, RSTART, RLENGTH - 1)
            text = substr(text, RSTART + RLENGTH)
        }
    if (name != "" && texts[place, "prose"] != "")
        keep_page(name)
    declaration = ""
    place = ""
}

function keep_page(name,    list, i) {
    n_pages++
    names[n_pages] = name
    declarations[n_pages] = declaration
    headers[n_pages] = header
    section_of[n_pages] = n_sections
    split(name, list, " ")
    for (i in list)
        page_of[list[i]] = list[1]
}

# ---- writing ----------------------------------------------------------------------

END {
    for (p = 1; p <= n_pages; p++)
        write_page(p)
    write_overview()
}

function summary(p) {
    return first_paragraph(texts["page " p, "prose"])
}

function first_paragraph(text) {
    sub(/\n.*/, "", text)
    return text
}

function write_page(p,    list, n, i) {
    n = split(names[p], list, " ")
    split("", own)
    for (i = 1; i <= n; i++)
        own[list[i]] = 1
    for (i = 2; i <= n; i++)
        print list[i] ".3", list[1] ".3"
    page = out "/man3/" list[1] ".3"
    write_head(names[p], 3, summary(p))
    put(".Sh SYNOPSIS\n.In " headers[p])
    write_declaration(declarations[p])
    for (i = 1; i <= n_labels; i++)
        write_label(p, i)
    write_see_also(p)
    close(page)
}

# What the page says under a label, and then what its section says.
function write_label(p, i,    text, more) {
    text = texts["page " p, labels[i]]
    more = labels[i] == "prose" ? "" : texts["section " section_of[p], labels[i]]
    if (text == "" && more == "")
        return
    put(".Sh " titles[i])
    if (text != "")
        write_text(text)
    if (text != "" && more != "" && substr(more, 1, 1) != ITEM)
        put(".Pp")
    if (more != "")
        write_text(more)
}

function write_declaration(text,    parts, n, i) {
    if (text ~ /^(struct|enum) /) {
        put(".Bd -literal\n" escape(substr(text, 1, length(text) - 1)) "\n.Ed")
        return
    }
    n = split(text, parts, ";")
    for (i = 1; i <= n; i++)
        if (parts[i] ~ /coll_/)
            write_prototype(parts[i])
}

# "int coll_test(struct coll_request *request)": its type, name and arguments
function write_prototype(text,    at, type, depth, i, c, arg) {
    gsub(/[ \n]+/, " ", text)
    gsub(/^ |static inline /, "", text)
    at = match(text, /coll_[a-z_]+\(/)
    type = substr(text, 1, at - 1)
    sub(/ $/, "", type)
    put(".Ft " quote(type))
    put(".Fo " substr(text, at, RLENGTH - 1))
    text = substr(text, at + RLENGTH)
    sub(/\) *$/, "", text)
    for (i = 1; i <= length(text) + 1; i++) {
        c = substr(text, i, 1)
        depth += (c == "(") - (c == ")")
        if (c == "" || (c == "," && depth == 0)) {
            sub(/^ /, "", arg)
            put(".Fa " quote(arg))
            arg = ""
        } else
            arg = arg c
    }
    put(".Fc")
}

# The pages that the comment names, those of the structs that are arguments, and
# libcoll(7), by section and name; then the files that the comment names.
function write_see_also(p,    list, n, i, pages, files) {
    put(".Sh SEE ALSO")
    pages = "7libcoll"
    n = split(texts["page " p, "See"], list, /[,;.]? +|\.$/)
    for (i = 1; i <= n; i++)
        if (match(list[i], /\([137]?\)/)) {
            own[substr(list[i], 1, RSTART - 1)] = 1
            pages = pages " " (RLENGTH == 2 ? 3 : substr(list[i], RSTART + 1, 1)) \
                substr(list[i], 1, RSTART - 1)
        } else if (list[i] != "")
            files = files " ,\n.Pa " list[i]
    n = split(declarations[p], list, /[^a-z_]+/)
    for (i = 1; i <= n; i++)
        if ((list[i] in page_of) && !(list[i] in own)) {
            pages = pages " 3" list[i]
            own[list[i]] = 1
        }
    write_sorted(pages, files)
}

# pages: words such as 3coll_start
function write_sorted(pages, files,    list, n, i, j, word) {
    n = split(pages, list, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            word = list[j]
            list[j] = list[j - 1]
            list[j - 1] = word
        }
    for (i = 1; i <= n; i++)
        put(".Xr " substr(list[i], 2) " " substr(list[i], 1, 1) (i < n ? " ," : files))
}

function write_overview(    s, i) {
    split("", own)
    own["libcoll"] = 1
    page = out "/man7/libcoll.7"
    write_head("libcoll", 7, "collective operations for host and GPU buffers")
    put(".Sh SYNOPSIS\n.In coll/coll.h")
    put(".Pp\n.Dl cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs libcoll)")
    put(".Sh DESCRIPTION")
    i = texts["file coll/coll.h", "prose"]
    sub(/^[^\n]*\n/, "", i)
    write_text(i)
    for (s = 1; s <= n_sections; s++)
        write_section(s)
    put(".Sh SEE ALSO")
    write_paragraph("coll_info(1), coll_plan(1), coll_train(1), coll_tune(1), " \
        "collrun(1), coll-variables(7)")
}

function write_section(s,    i, text, p) {
    put(".Ss " toupper(substr(sections[s], 1, 1)) substr(sections[s], 2))
    for (i = 1; i <= n_labels; i++) {
        text = texts["section " s, labels[i]]
        if (text != "" && labels[i] != "prose")
            put(".Pp\n.Sy " labels[i] " :")
        if (text != "")
            write_text(text)
    }
    if (lists[s])
        write_list(lists[s])
    for (p = 1; p <= n_pages; p++)
        if (section_of[p] == s)
            add_to_list(s, p)
    if (n_listed[s])
        end_list()
}

function write_list(text,    items, n, i) {
    put(".Pp\n.Bl -tag -width COLL_REDUCE_SCATTERV -compact")
    n = split(text, items, "\n")
    for (i = 1; i <= n; i++)
        write_item(substr(items[i], 2))
    end_list()
}

function add_to_list(s, p,    name) {
    if (!n_listed[s]++)
        begin_list()
    name = names[p]
    gsub(/ /, " 3 , Xr ", name)
    put(".It Xr " name " 3")
    write_paragraph(summary(p))
}
