/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_info.c - show libcoll's build, what works on this machine, the settings, and the
 * machine's topology.
 *
 * Uses the public API only.  A section has a name, a function that writes text and one
 * that makes JSON.  If no section is asked for, all are shown.
 */
#include "tools/common/program.h"
#include "tools/common/table.h"
#include <coll/coll.h>

#include <jansson.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JSON must be UTF-8; the environment may hold any bytes. */
static json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    char *copy = string ? NULL : strdup(text);

    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c >= 128)
            *c = '?';
    if (copy)
        string = json_string(copy);
    free(copy);
    return string;
}

/* ---- what is built ----------------------------------------------------- */

/* Print the build in the layout of horovodrun --check-build. */
static int print_build(void)
{
    struct coll_feature f;
    const char *group = "";

    printf("libcoll v%s:\n", coll_version());
    for (size_t i = 0; !coll_feature_list(i, &f); i++) {
        if (strcmp(group, f.group))
            printf("\n%s:\n", f.group);
        group = f.group;
        printf("    [%c] %s", f.is_built ? 'X' : ' ', f.name);
        printf(f.is_built && strcmp(group, "Libraries") &&
                       strcmp(group, "Devices")
                   ? "\n"
                   : " (%s)\n",
               f.detail);
    }
    return 0;
}

static json_t *json_build(void)
{
    struct coll_feature f;
    json_t *list = json_array();

    for (size_t i = 0; !coll_feature_list(i, &f); i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b, s:s}", "group",
                                        f.group, "name", f.name, "is_built",
                                        f.is_built, "detail", f.detail));
    return list;
}

/* ---- transports -------------------------------------------------------- */

static void fill_row(struct table_row *row, const char *transport,
                     const char *is_allowed, const char *is_usable,
                     const char *what)
{
    *row = (struct table_row){.n = 0};
    row_text(row, NULL, "transport", -9, transport);
    row_text(row, NULL, "allowed", -7, is_allowed);
    row_text(row, NULL, "usable", -6, is_usable);
    row_text(row, NULL, "what", -1, what);
}

static void print_transport(const struct coll_transport_info *t)
{
    char what[512];
    struct table_row row;

    snprintf(what, sizeof(what), "%s%s%s", t->what,
             t->is_usable ? "" : "; not usable: ", t->is_usable ? "" : t->why);
    fill_row(&row, t->name, t->is_allowed ? "yes" : "no",
             t->is_usable ? "yes" : "no", what);
    table_print_row(stdout, &row, TABLE_PLAIN);
    if (!t->note[0])
        return;
    fill_row(&row, "", "", "", t->note);
    table_print_row(stdout, &row, TABLE_PLAIN);
}

static int print_transports(void)
{
    struct coll_transport_info t;
    struct table_row row;

    fill_row(&row, "", "", "", "");
    table_print_heads(stdout, &row, TABLE_PLAIN);
    for (size_t i = 0; !coll_transport_list(i, &t); i++)
        print_transport(&t);
    return 0;
}

static json_t *json_transports(void)
{
    struct coll_transport_info t;
    json_t *list = json_array();

    for (size_t i = 0; !coll_transport_list(i, &t); i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:b, s:b, s:o, s:o}", "name", t.name, "what",
                      t.what, "is_allowed", t.is_allowed, "is_usable",
                      t.is_usable, "why", json_text(t.is_usable ? "" : t.why),
                      "note", json_text(t.note)));
    return list;
}

/* ---- parameters -------------------------------------------------------- */

/* Secrets come from the environment; a listing never shows them. */
static const char *shown_value(const struct coll_param *p)
{
    if (p->is_set && strstr(p->name, "SECRET"))
        return "(set, not shown)";
    return p->value;
}

static int print_params(void)
{
    struct coll_param p;

    for (size_t i = 0; !coll_param_list(i, &p); i++) {
        printf("%s=%s", p.name, shown_value(&p));
        if (p.is_set && p.standard[0])
            printf("  (default %s)", p.standard);
        printf("%s\n    %s\n", p.is_set ? "  (set)" : "", p.what);
    }
    return 0;
}

static json_t *json_params(void)
{
    struct coll_param p;
    json_t *list = json_array();

    for (size_t i = 0; !coll_param_list(i, &p); i++)
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:s, s:b, s:s}", "name", p.name,
                            "value", json_text(shown_value(&p)), "default",
                            p.standard, "is_set", p.is_set, "what", p.what));
    return list;
}

/* ---- topology ---------------------------------------------------------- */

static int print_topology_as(enum coll_topo_format format)
{
    char *text;

    if (coll_topo_export(format, &text)) {
        fprintf(stderr, "coll_info: %s\n", coll_last_error());
        return -1;
    }
    fputs(text, stdout);
    free(text);
    return 0;
}

static int print_topology(void) { return print_topology_as(COLL_TOPO_TEXT); }

/* Return the lines of the topology tree; NULL after an error, printed on stderr. */
static json_t *json_topology(void)
{
    char *text, *rest, *line;
    json_t *list;

    if (coll_topo_export(COLL_TOPO_TEXT, &text)) {
        fprintf(stderr, "coll_info: %s\n", coll_last_error());
        return NULL;
    }
    list = json_array();
    rest = text;
    while ((line = strsep(&rest, "\n")))
        if (*line)
            json_array_append_new(list, json_text(line));
    free(text);
    return list;
}

/* ---- sections ---------------------------------------------------------- */

enum { CHECK_BUILD, TRANSPORTS, PARAMS, TOPOLOGY, N_SECTIONS };

static const struct {
    const char *title, *key;
    int (*print)(void);
    json_t *(*json)(void);
} sections[N_SECTIONS] = {
    [CHECK_BUILD] = {"Build", "build", print_build, json_build},
    [TRANSPORTS] = {"Transports on this machine", "transports",
                    print_transports, json_transports},
    [PARAMS] = {"Parameters", "params", print_params, json_params},
    [TOPOLOGY] = {"Topology", "topology", print_topology, json_topology},
};

enum form { FORM_TEXT, FORM_JSON, FORM_XML, FORM_DOT };

struct choice {
    int wants[N_SECTIONS], n_wanted;
    int is_json, is_xml, is_dot;
    enum form form;
};

static int print_sections(const struct choice *choice)
{
    for (int s = 0; s < N_SECTIONS; s++) {
        if (!choice->wants[s])
            continue;
        if (choice->n_wanted > 1 && s != CHECK_BUILD)
            printf("\n%s:\n", sections[s].title);
        if (sections[s].print())
            return 1;
    }
    return 0;
}

static int print_json(const struct choice *choice)
{
    json_t *all = json_pack("{s:s}", "version", coll_version());
    int rc = 0;

    for (int s = 0; s < N_SECTIONS && !rc; s++) {
        json_t *part = choice->wants[s] ? sections[s].json() : NULL;

        if (part)
            json_object_set_new(all, sections[s].key, part);
        else
            rc = choice->wants[s];
    }
    if (!rc) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    return rc;
}

static int print_choice(const struct choice *choice)
{
    switch (choice->form) {
    case FORM_JSON:
        return print_json(choice);
    case FORM_XML:
        return print_topology_as(COLL_TOPO_XML) != 0;
    case FORM_DOT:
        return print_topology_as(COLL_TOPO_DOT) != 0;
    case FORM_TEXT:
        break;
    }
    return print_sections(choice);
}

/* ---- command line ------------------------------------------------------ */

#define AT(field) offsetof(struct choice, field)
#define SECTION(section) offsetof(struct choice, wants[section])

static const struct program_option options[] = {
    {.name = "", .help = "Sections (all of them when none is named)"},
    {"check-build", 'c', OPTION_SWITCH, SECTION(CHECK_BUILD), NULL, NULL,
     .help = "the devices, launchers, transports and libraries of this build"},
    {"transports", 't', OPTION_SWITCH, SECTION(TRANSPORTS), NULL, NULL,
     .help = "the transports, and whether they work on this machine"},
    {"params", 'p', OPTION_SWITCH, SECTION(PARAMS), NULL, NULL,
     .help = "the COLL_* variables, their values and meaning"},
    {"topology", 'T', OPTION_SWITCH, SECTION(TOPOLOGY), NULL, NULL,
     .help = "packages, NUMA nodes, caches, cores, network cards and GPUs"},
    {.name = "", .help = "Form"},
    {"json", 0, OPTION_SWITCH, AT(is_json), NULL, NULL,
     .help = "print one JSON object"},
    {"xml", 0, OPTION_SWITCH, AT(is_xml), NULL, NULL,
     .help = "print the topology as hwloc's XML, which COLL_TOPO_FILE reads"},
    {"dot", 0, OPTION_SWITCH, AT(is_dot), NULL, NULL,
     .help = "print the topology as a graph for graphviz"},
    {.name = NULL},
};

static const struct program program = {
    .name = "coll_info",
    .usage = "[SECTION]... [FORM]",
    .about = "Print what libcoll is built with, what works on this machine, "
             "how it can be set,\nand what the machine looks like.",
    .options = options,
};

static int check_choice(struct choice *choice)
{
    if (choice->is_json + choice->is_xml + choice->is_dot > 1)
        return program_refuse(&program, "only one of --json, --xml and --dot "
                                        "can be given");
    choice->form = choice->is_json  ? FORM_JSON
                   : choice->is_xml ? FORM_XML
                   : choice->is_dot ? FORM_DOT
                                    : FORM_TEXT;
    for (int i = 0; i < N_SECTIONS; i++)
        choice->n_wanted += choice->wants[i];
    if ((choice->is_xml || choice->is_dot) &&
        choice->n_wanted > choice->wants[TOPOLOGY])
        return program_refuse(&program,
                              "--%s is a form of --topology only; "
                              "leave the other sections out",
                              choice->is_xml ? "xml" : "dot");
    for (int i = 0; i < N_SECTIONS && !choice->n_wanted; i++)
        choice->wants[i] = 1;
    if (!choice->n_wanted)
        choice->n_wanted = N_SECTIONS;
    return 0;
}

int main(int argc, char **argv)
{
    struct choice choice = {.form = FORM_TEXT};
    int status;

    if (program_read(&program, argc, argv, &choice, &status) < 0)
        return status;
    status = check_choice(&choice);
    return status ? status : program_finish(&program, print_choice(&choice));
}
