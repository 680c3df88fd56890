/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_report.c - lines of checks through a pipe, a table, JSON.
 *
 * A line is "kind TAB holds TAB what TAB want TAB got"; the last one is "E".  A rule
 * whose lines end without it has died, which differs from every expectation.
 */
#include "tests/gpu/driver_rules_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int report_fd = -1;

void report_to(int fd) { report_fd = fd; }

/* Tabs and newlines would end a field. */
static void put_field(char *line, size_t room, const char *text)
{
    size_t at = strlen(line);

    while (*text && at + 2 < room) {
        char c = *text++;

        if (c == '\n' && line[at - 1] == ' ')
            continue;
        line[at++] = (char)(c == '\t' || c == '\n' ? ' ' : c);
    }
    line[at++] = '\t';
    line[at] = '\0';
}

void report_line(char kind, int holds, const char *what, const char *want,
                 const char *got)
{
    char line[600];

    snprintf(line, sizeof(line), "%c\t%d\t", kind, holds);
    put_field(line, 220, what);
    put_field(line, 330, want);
    put_field(line, sizeof(line) - 1, got);
    line[strlen(line) - 1] = '\n';
    if (write(report_fd, line, strlen(line)) < 0)
        _exit(2);
}

void report_end(void)
{
    if (write(report_fd, "E\n", 2) < 0)
        _exit(2);
}

static void read_check(struct check *c, char *line)
{
    char *holds, *what, *want, *got;

    memset(c, 0, sizeof(*c));
    c->kind = line[0];
    strsep(&line, "\t");
    holds = strsep(&line, "\t");
    what = strsep(&line, "\t");
    want = strsep(&line, "\t");
    got = strsep(&line, "\t");
    c->holds = holds && *holds == '1';
    snprintf(c->what, sizeof(c->what), "%s", what ? what : "");
    snprintf(c->want, sizeof(c->want), "%s", want ? want : "");
    snprintf(c->got, sizeof(c->got), "%s", got ? got : "");
}

/* The process ended before it said that it had. */
static void add_death(struct result *r, int status)
{
    struct check *c = &r->checks[r->n_checks++];

    memset(c, 0, sizeof(*c));
    c->kind = 'W';
    snprintf(c->want, sizeof(c->want), "ends by itself");
    if (r->n_checks > 1)
        snprintf(c->what, sizeof(c->what), "the process, after \"%.150s\"",
                 r->checks[r->n_checks - 2].what);
    else
        snprintf(c->what, sizeof(c->what), "the process");
    if (status == -1)
        snprintf(c->got, sizeof(c->got), "still there at its limit of time");
    else if (WIFSIGNALED(status))
        snprintf(c->got, sizeof(c->got), "ended by signal %d",
                 WTERMSIG(status));
    else
        snprintf(c->got, sizeof(c->got), "ended with status %d",
                 WEXITSTATUS(status));
}

void result_read(struct result *r, char *text, int status)
{
    size_t n_lines = 1;
    int has_ended = 0;
    char *line;

    for (const char *c = text; *c; c++)
        n_lines += *c == '\n';
    r->checks = calloc(n_lines + 1, sizeof(*r->checks));
    r->n_checks = 0;
    while ((line = strsep(&text, "\n"))) {
        if (!strcmp(line, "E"))
            has_ended = 1;
        else if (*line)
            read_check(&r->checks[r->n_checks++], line);
    }
    if (!has_ended)
        add_death(r, status);
    r->outcome = HOLDS;
    for (size_t i = 0; i < r->n_checks; i++) {
        if (r->checks[i].kind == 'N' && r->outcome == HOLDS)
            r->outcome = CANNOT;
        if (r->checks[i].kind == 'W' && !r->checks[i].holds)
            r->outcome = DIFFERS;
    }
}

static const char *const outcome_names[] = {"holds", "differs", "cannot"};

void report_table(const struct result *r, int is_long)
{
    char name[64];

    snprintf(name, sizeof(name), "%s/%s", r->rule->area, r->rule->name);
    printf("%-8s %-38s %s\n", outcome_names[r->outcome], name, r->rule->text);
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct check *c = &r->checks[i];

        if (c->kind == 'N')
            printf("         - cannot be tried: %s\n", c->what);
        else if (c->kind == 'W' && (is_long || !c->holds))
            printf("         %c %s: expected %s, saw %s\n",
                   c->holds ? '-' : '*', c->what, c->want, c->got);
        else if (c->kind == 'S' && is_long)
            printf("         - %s: saw %s\n", c->what, c->got);
    }
    fflush(stdout);
}

static void put_pair(FILE *f, const char *name, const char *text,
                     const char *end)
{
    fprintf(f, "\"%s\": ", name);
    gpu_put_json(f, text);
    fputs(end, f);
}

static void put_check(FILE *f, const struct check *c, int is_last)
{
    fputs("        {", f);
    if (c->kind == 'N') {
        put_pair(f, "cannot", c->what, "");
    } else {
        put_pair(f, "what", c->what, ", ");
        if (c->kind == 'W')
            put_pair(f, "expected", c->want, ", ");
        put_pair(f, "seen", c->got, "");
    }
    fputs(is_last ? "}\n" : "},\n", f);
}

static void put_result(FILE *f, const struct result *r, int is_last)
{
    fputs("    {", f);
    put_pair(f, "area", r->rule->area, ", ");
    put_pair(f, "name", r->rule->name, ", ");
    put_pair(f, "result", outcome_names[r->outcome], ",\n     ");
    put_pair(f, "rule", r->rule->text, ",\n     ");
    put_pair(f, "source", r->rule->cite, ",\n");
    fprintf(f, "     \"seconds\": %.2f, \"checks\": [\n", r->seconds);
    for (size_t i = 0; i < r->n_checks; i++)
        put_check(f, &r->checks[i], i + 1 == r->n_checks);
    fputs(is_last ? "     ]}\n" : "     ]},\n", f);
}

int report_json(const char *path, const struct gpu_found *m,
                const struct result *results, size_t n)
{
    size_t counts[3] = {0};
    FILE *f = fopen(path, "w");

    if (!f)
        return -1;
    for (size_t i = 0; i < n; i++)
        counts[results[i].outcome]++;
    gpu_put_head(f, "driver_rules", m);
    fprintf(f, "  \"holds\": %zu, \"differs\": %zu, \"cannot\": %zu,\n",
            counts[HOLDS], counts[DIFFERS], counts[CANNOT]);
    fputs("  \"rules\": [\n", f);
    for (size_t i = 0; i < n; i++)
        put_result(f, &results[i], i + 1 == n);
    fputs("  ]\n}\n", f);
    return fclose(f);
}
