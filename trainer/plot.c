/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - coll_plot: pictures of what coll_train and collrun leave behind. */
#include "trainer/plot.h"
#include "coll/coll.h"
#include "tools/common/gnuplot.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

static const char usage[] =
    "Usage: coll_plot loss|accuracy -o PICTURE RESULT.json...\n"
    "       coll_plot scaling -o PICTURE TABLE.csv...\n"
    "       coll_plot timeline -o PICTURE TIMELINE.json\n"
    "Draw what coll_train --json, collrun --scaling --csv and COLL_TIMELINE\n"
    "wrote; a line for each file.\n"
    "\n"
    "  -o, --output FILE  the picture, NAME.svg or NAME.png\n"
    "      --from S       timeline: begin after S seconds (0)\n"
    "      --to S         timeline: end there (the end of the file, 2 at most\n"
    "                     after the beginning)\n"
    "  -h, --help         print this and exit\n"
    "  -V, --version      print the version and exit\n"
    "\n"
    "Exit status: 0 done, 2 bad usage, 1 any other failure.\n";

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

/* The script is made first, so that a bad file leaves no picture. */
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

static int bad_usage(const char *why)
{
    plot_fail("%s; see coll_plot --help", why);
    return EXIT_USAGE;
}

static int read_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end == text || *end || !(*seconds >= 0 && *seconds < 1e9) ? -1 : 0;
}

static int parse(struct plot *p, int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"from", required_argument, NULL, 'f'},
        {"to", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0}};
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "o:hV", options, NULL)) != -1)
        switch (c) {
        case 'o':
            p->output = optarg;
            break;
        case 'f':
        case 't':
            if (read_seconds(optarg, c == 'f' ? &p->from : &p->to))
                return bad_usage("--from and --to want seconds");
            break;
        case 'h':
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        case 'V':
            printf("coll_plot (libcoll) %s\n", coll_version());
            exit(EXIT_SUCCESS);
        default:
            return bad_usage("an option is unknown or wants a value");
        }
    return 0;
}

int main(int argc, char **argv)
{
    struct plot p = {.output = NULL};
    const struct kind *kind = kinds;
    int status = parse(&p, argc, argv);

    if (status)
        return status;
    if (optind >= argc)
        return bad_usage("what shall be drawn?");
    while (kind->name && strcmp(kind->name, argv[optind]))
        kind++;
    if (!kind->name)
        return bad_usage("it draws loss, accuracy, scaling or timeline");
    if (!p.output || (!ends_in(p.output, ".svg") && !ends_in(p.output, ".png")))
        return bad_usage("name the picture by -o NAME.svg or -o NAME.png");
    p.files = argv + optind + 1;
    p.n_files = argc - optind - 1;
    if (!p.n_files)
        return bad_usage("of which file?");
    return draw(&p, kind) ? EXIT_FAILURE : EXIT_SUCCESS;
}
