/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - coll_plot: pictures of what coll_train and collrun leave behind. */
#include "trainer/plot.h"
#include "tools/common/gnuplot.h"
#include "tools/common/program.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int plot_fail(const char *format, ...)
{
    va_list args;

    fputs("coll_plot: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return -1;
}

json_t *plot_read(const char *path)
{
    json_error_t error;
    json_t *all = json_load_file(path, 0, &error);

    if (!all && error.line < 0)
        plot_fail("%s; name a file that coll_train wrote", error.text);
    else if (!all)
        plot_fail("%s, line %d: %s; name a file that coll_train wrote", path,
                  error.line, error.text);
    return all;
}

static const struct kind {
    const char *name;
    int (*draw)(const struct plot *p, FILE *to);
} kinds[] = {
    {"loss", plot_loss},
    {"accuracy", plot_accuracy},
    {"scaling", plot_scaling},
    {"timeline", plot_timeline},
    {NULL, NULL},
};

/* ---- gnuplot ------------------------------------------------------------------ */

static int ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n > m && !strcmp(path + n - m, end);
}

/* The script is written before gnuplot starts, so that a bad file leaves no
 * picture. */
static int make_script(const struct plot *p, const struct kind *kind,
                       char **script, size_t *len)
{
    FILE *to = open_memstream(script, len);
    int st;

    if (!to)
        return plot_fail("out of memory");
    fprintf(to,
            "set terminal %s size 960,540 background rgb 'white'\n"
            "set grid\nset key noenhanced\n",
            gnuplot_terminal(p->output));
    st = kind->draw(p, to);
    return fclose(to) ? plot_fail("out of memory") : st;
}

static int draw(const struct plot *p, const struct kind *kind)
{
    char *script = NULL;
    size_t len = 0;
    int err, st = make_script(p, kind, &script, &len);
    struct gnuplot gnuplot;

    if (st) {
        free(script);
        return st;
    }
    err = gnuplot_start(&gnuplot, p->output);
    if (err) {
        free(script);
        return plot_fail("cannot draw %s: %s; is gnuplot installed (Debian: "
                         "gnuplot-nox), and the folder there?",
                         p->output, strerror(err));
    }
    fwrite(script, 1, len, gnuplot.script);
    free(script);
    return gnuplot_finish(&gnuplot)
               ? plot_fail("gnuplot could not draw %s", p->output)
               : 0;
}

/* ---- the command line ----------------------------------------------------------- */

#define AT(field) offsetof(struct plot, field)
#define MOST_SECONDS 1e9

static const struct program_option options[] = {
    {"output", 'o', OPTION_TEXT, AT(output), "NAME.svg|NAME.png", NULL,
     .help = "the picture to draw"},
    {"from", 0, OPTION_REAL, AT(from), "SECONDS", NULL,
     .help = "of a timeline: begin there", .most = MOST_SECONDS},
    {"to", 0, OPTION_REAL, AT(to), "SECONDS", NULL,
     .help = "of a timeline: end there", .most = MOST_SECONDS},
    {.name = NULL},
};

static const struct program program = {
    .name = "coll_plot",
    .usage = "loss|accuracy -o PICTURE RESULT.json...\n"
             "scaling -o PICTURE TABLE.csv...\n"
             "timeline -o PICTURE TIMELINE.json",
    .about = "Draw what coll_train --json, collrun --scaling --csv and "
             "COLL_TIMELINE have written,\na line for each file.",
    .notes = "A timeline is drawn to its end, or for 2 seconds without --to.\n"
             "\n"
             "Exit status: 0 when the picture is drawn; 1 for a failure; 2 for "
             "wrong usage.\n",
    .options = options,
    .most_words = -1,
};

static int bad_usage(const char *why)
{
    return program_refuse(&program, "%s; see coll_plot --help", why);
}

int main(int argc, char **argv)
{
    struct plot p = {.output = NULL};
    const struct kind *kind = kinds;
    int status, first = program_read(&program, argc, argv, &p, &status);

    if (first < 0)
        return status;
    if (first == argc)
        return bad_usage(
            "say what to draw: loss, accuracy, scaling or timeline");
    while (kind->name && strcmp(kind->name, argv[first]))
        kind++;
    if (!kind->name)
        return bad_usage("it draws loss, accuracy, scaling or timeline");
    if (!p.output || (!ends_in(p.output, ".svg") && !ends_in(p.output, ".png")))
        return bad_usage("name the picture by -o NAME.svg or -o NAME.png");
    p.files = argv + first + 1;
    p.n_files = argc - first - 1;
    if (!p.n_files)
        return bad_usage("name the file to draw");
    return program_finish(&program, draw(&p, kind) ? EXIT_FAILURE : 0);
}
