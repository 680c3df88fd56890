/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - lines like those of Keras and Horovod. */
#include "trainer/report.h"
#include "trainer/clock.h"
#include "coll/coll.h"
#include "trainer/blocks.h"
#include "trainer/checkpoint.h"
#include "trainer/choices.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/models.h"
#include "trainer/onednn.h"
#include "trainer/optim.h"
#include "trainer/rate.h"
#include "trainer/report_json.h"
#include "trainer/sampler.h"
#include "trainer/stop.h"
#include "trainer/train.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BAR 30          /* characters */
#define REDRAW 0.1      /* seconds between two drawings of the bar */

double report_max_rss(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024; /* Linux counts KiB */
}

/* ---- life cycle ---- */

/* Return 1 if a person sees the bar.  mpirun gives its ranks a terminal of its
 * own, wherever its output goes. */
static int is_watched(void)
{
    return isatty(STDOUT_FILENO) && !getenv("OMPI_COMM_WORLD_SIZE");
}

int report_init(struct report *r, const struct trainer *t)
{
    *r = (struct report){.t = t,
                         .is_speaker = t->ddp->rank == 0,
                         .mode = t->args->progress};
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line is written when it is
                                       * complete */
    return r->is_speaker ? report_take_over(r) : 0;
}

int report_take_over(struct report *r)
{
    r->is_speaker = 1;
    if (r->mode == PROGRESS_AUTO)
        r->mode = is_watched() ? PROGRESS_BAR : PROGRESS_PLAIN;
    return report__json_open(r);
}

void report_fini(struct report *r)
{
    if (r->json && r->json != stdout)
        fclose(r->json);
    r->json = NULL;
    free(r->epochs);
    r->epochs = NULL;
}

static int cannot_keep(size_t n)
{
    return train_fail("out of memory for the figures of %zu epochs; lower "
                      "--epochs",
                      n);
}

/* ---- lines ---- */

/* Write n with commas, "1,199,882". */
static const char *with_commas(size_t n, char text[32])
{
    char plain[24];
    int len = snprintf(plain, sizeof(plain), "%zu", n);
    char *to = text;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = plain[i];
    }
    *to = '\0';
    return text;
}

static const char *const scale_words[] = {"linear", "sqrt", "none"};

static void print_kernels(const struct model *m)
{
    for (int i = 0; i < model_n_layers(m); i++) {
        const struct layer *l = model_layer(m, i);

        printf("layer %d %-10s %dx%dx%d -> %dx%dx%d  %zu params%s%s\n", i,
               l->ops->name, l->in.channels, l->in.height, l->in.width,
               l->out.channels, l->out.height, l->out.width,
               model_layer_params(m, i), l->ops == &layer_conv ? "  " : "",
               l->ops == &layer_conv ? onednn_conv_kernels(l->state) : "");
    }
}

static void print_buckets(const struct ddp *d)
{
    printf("  buckets %d:", d->n_buckets);
    for (int i = 0; i < d->n_buckets; i++)
        printf(" %.2f", (double)d->buckets[i].count * 4 / 1048576);
    printf(" MiB\n");
}

/* Print the other options that decide the results and are not the defaults. */
static void print_choices(const struct args *a)
{
    const char *before = "options";
    struct choice c;

    for (size_t i = 0; choice_at(&c, a, i); i++)
        if (!c.is_in_head && !c.is_standard) {
            printf("%s %s%s%s", before, c.name, c.is_switch ? "" : " ",
                   c.is_switch ? "" : c.text);
            before = " ";
        }
    if (*before == ' ')
        putchar('\n');
}

/* Print the numbers of ranks for which --deterministic gives the same bits. */
static void print_blocks(const struct trainer *t)
{
    const struct blocks *b = &t->blocks;
    size_t images = b->n_all * b->len;

    if (b->is_shared)
        printf(
            "deterministic: the same bits on 1, 2, 4... ranks, up to %zu, with "
            "%zu images a step%s and the same learning rate\n",
            b->n_all, images,
            model_needs_batch(t->desc) ? ", batches of this size" : "");
    else
        printf("deterministic: the same bits on %d rank%s alone: %s\n",
               t->ddp->size, t->ddp->size > 1 ? "s" : "", b->why_not);
}

static void print_zero(const struct trainer *t)
{
    size_t n = optim_arrays(t->optim.kind) * model_n_params(t->model);

    printf("zero 1: %.2f of %.2f MiB of optimizer state on a rank\n",
           (double)report__most_state(t) / 1048576,
           (double)(n * sizeof(float)) / 1048576);
}

/* Print what the steps were and are, and that the epoch is begun anew. */
static void print_other_steps(const struct trainer *t)
{
    static const char *const shards[] = {"sampler", "stride", "random"};
    const struct checkpoint_steps *was = &t->saving.steps;
    const struct sampler *is = &t->sampler;

    if (was->n_ranks != (uint64_t)is->n_ranks || was->batch != is->batch)
        printf("that was with %llu ranks of %llu images a step; from here on "
               "%d of %zu\n",
               (unsigned long long)was->n_ranks, (unsigned long long)was->batch,
               is->n_ranks, is->batch);
    if (was->shard != (uint64_t)is->shard ||
        was->drops_rest != (uint64_t)is->drops_rest)
        printf("that was with --shard %s --drop-last %s; from here on --shard "
               "%s --drop-last %s\n",
               was->shard < 3 ? shards[was->shard] : "unknown",
               was->drops_rest ? "on" : "off", shards[is->shard],
               is->drops_rest ? "on" : "off");
}

/* Print whose state is kept, and what happened to that of an earlier run. */
static void print_run(const struct trainer *t)
{
    if (t->epoch || t->skip)
        printf("resumed after epoch %llu, step %llu\n",
               (unsigned long long)t->epoch, (unsigned long long)t->optim.step);
    if (trainer_has_other_steps(t) && !t->args->eval_only)
        print_other_steps(t);
    if (*t->saving.folder.moved)
        printf("checkpoints of an earlier run are in %s/%s now\n",
               t->saving.folder.dir, t->saving.folder.moved);
}

/* Return what computes, and by which libraries. */
static const char *device_text(const struct trainer *t, char text[256])
{
    char what[128], libraries[64];

    t->device->about.say(what, sizeof(what));
    if (t->device->about.libraries(libraries, sizeof(libraries)))
        *libraries = '\0';
    if (*what)
        snprintf(text, 256, "device %s  precision %s  cuDNN %s", what,
                 precision_name((enum precision)t->args->precision), libraries);
    else
        snprintf(text, 256, "threads %llu  oneDNN %s",
                 (unsigned long long)t->args->threads, libraries);
    return text;
}

void report_start(struct report *r)
{
    const struct trainer *t = r->t;
    const struct args *a = t->args;
    char text[32], device[256];

    r->past.start = now();
    if (!r->is_speaker || r->mode == PROGRESS_OFF)
        return;
    printf("libcoll trainer %s  %d proc%s on %d node%s (%s)  model %s %s "
           "params  %s %zu/%zu  batch %dx%llu  %s%s lr %.6g",
           coll_version(), t->ddp->size, t->ddp->size > 1 ? "s" : "",
           t->ddp->n_hosts, t->ddp->n_hosts > 1 ? "s" : "",
           ddp_transports(t->ddp), a->model,
           with_commas(model_n_params(t->model), text), a->dataset,
           t->data.train.n, t->data.test.n, t->ddp->size,
           (unsigned long long)a->batch_size, optim_name(t->optim.kind),
           a->nesterov ? " nesterov" : "", t->optim.lr);
    print_buckets(t->ddp);
    printf("data %s  lr scale %s  lr schedule %s  init %s  normalize %s  "
           "augment %s  "
           "dropout %s  seed %llu  %s  algorithm %s\n",
           t->data.where, scale_words[a->lr_scale], a->schedule.text,
           a->init ? "torch" : "glorot",
           a->normalize_meanstd ? "meanstd" : "unit",
           a->augment ? "flip-crop" : "none", a->dropout_off ? "off" : "on",
           (unsigned long long)a->seed, device_text(t, device), t->ddp->algo);
    if (!a->eval_only)
        print_choices(a);
    if (a->deterministic)
        print_blocks(t);
    if (a->zero)
        print_zero(t);
    if (a->verbose)
        print_kernels(t->model);
    print_run(t);
}

void report_plan(struct report *r)
{
    const struct trainer *t = r->t;
    uint64_t left = t->args->epochs > t->epoch ? t->args->epochs - t->epoch : 0;

    if (!r->is_speaker)
        return;
    printf("dry run: %zu steps per epoch, %llu epochs, %llu steps, lr %.6g",
           t->sampler.n_steps, (unsigned long long)left,
           (unsigned long long)(left * t->sampler.n_steps), t->optim.lr);
    if (t->args->schedule.kind != SCHEDULE_CONST && left)
        printf(", %.6g in the last step", rate_at(&t->rate, t->rate.n_steps));
    putchar('\n');
}

void report_epoch_start(struct report *r)
{
    unsigned long long epoch = r->t->epoch + 1;

    r->last_draw = now();
    if (r->is_speaker && r->mode != PROGRESS_OFF)
        printf("Epoch %llu/%llu\n", epoch,
               (unsigned long long)r->t->args->epochs);
    if (r->t->args->verbose)
        printf("rank %d | Epoch %llu\n", r->t->ddp->rank, epoch);
}

/* Print "13/14 [===>...]". */
static void print_bar(size_t step, size_t n_steps)
{
    int width = snprintf(NULL, 0, "%zu", n_steps);
    size_t full = step * BAR / n_steps;

    printf("%*zu/%zu [", width, step, n_steps);
    for (size_t i = 0; i < BAR; i++)
        putchar(i < full ? '=' : i == full ? '>' : '.');
    putchar(']');
}

/* With --log-interval: print the line of a step as Horovod's pytorch_mnist
 * does, with the number of this rank's images before it.  It replaces the bar.
 */
static void print_step(struct report *r, const struct progress_stats *p)
{
    const struct sampler *s = &r->t->sampler;
    size_t done = p->step - 1, all = s->n_steps * s->batch;

    if (r->t->args->log_interval == 0 || done % r->t->args->log_interval)
        return;
    printf("%sTrain Epoch: %llu [%zu/%zu (%.0f%%)]\tLoss: %.6f\n",
           r->is_drawn ? "\r\033[K" : "", (unsigned long long)r->t->epoch + 1,
           done * s->batch, all < s->n_mine && s->most ? all : s->n_mine,
           100 * (double)done / (double)s->n_steps, p->step_loss);
    r->is_drawn = 0;
}

void report_progress(void *arg, const struct progress_stats *p)
{
    struct report *r = arg;
    size_t n = r->t->sampler.n_steps;

    if (!r->is_speaker)
        return;
    print_step(r, p);
    if (r->mode != PROGRESS_BAR || now() - r->last_draw < REDRAW)
        return;
    r->last_draw = now();
    r->is_drawn = 1;
    putchar('\r');
    print_bar(p->step, n);
    printf(" - ETA: %.0fs - loss: %.4f - accuracy: %.4f\033[K",
           p->seconds / (double)p->step * (double)(n - p->step), p->loss,
           p->accuracy);
    fflush(stdout);
}

/* Print "lost 1 of 4 ranks" or "1 newcomer joined 3 ranks". */
static void print_change(int before, int after)
{
    int n = after - before;

    if (n > 0)
        printf("%d newcomer%s joined %d rank%s", n, n > 1 ? "s" : "", before,
               before > 1 ? "s" : "");
    else
        printf("lost %d of %d ranks", -n, before);
}

void report_ranks(struct report *r, int before, double seconds)
{
    const struct trainer *t = r->t;
    int now = t->ddp->size;

    report_epoch_cut(r);
    if (t->ddp->rank || r->mode == PROGRESS_OFF)
        return;
    print_change(before, now);
    if (t->rescue.is_training)
        printf(": %d go%s on after step %llu, in %.2f second\n", now,
               now > 1 ? "" : "es", (unsigned long long)t->optim.step, seconds);
    else
        printf(": %d begin%s anew\n", now, now > 1 ? "" : "s");
}

/* ---- to newcomers ---- */

/* Find the lowest of the ranks with most epochs, and how many it has. */
static int find_fullest(const struct report *r, int *rank, size_t *n)
{
    struct ddp *d = r->t->ddp;
    double size = d->size, most;

    most = (double)r->past.n_epochs * size + size - 1 - d->rank;
    if (ddp_max(d, &most, 1))
        return -1;
    *n = (size_t)(most / size);
    *rank = (int)(size - 1 - fmod(most, size));
    return 0;
}

/* The clocks of two hosts differ. */
static int share_past(struct report *r, int root)
{
    struct {
        struct past past;
        double now;
    } told = {r->past, now()};
    double lead;

    if (ddp_share_bytes(r->t->ddp, &told, sizeof(told), root))
        return -1;
    lead = now() - told.now;
    if (r->t->ddp->rank == root)
        return 0;
    r->past = told.past;
    r->past.start += lead;
    r->past.first_end += lead;
    return 0;
}

int report_share(struct report *r)
{
    struct ddp *d = r->t->ddp;
    struct epoch_stats *more;
    int root, failed;
    size_t n;

    if (find_fullest(r, &root, &n))
        return -1;
    more = realloc(r->epochs, (n + 1) * sizeof(*more));
    if (more)
        r->epochs = more;
    if (ddp_agree(d, more ? 0 : cannot_keep(n), &failed) || failed >= 0)
        return -1;
    return ddp_share_bytes(d, r->epochs, n * sizeof(*r->epochs), root) ||
                   share_past(r, root)
               ? -1
               : 0;
}

void report_stopped(struct report *r)
{
    const struct trainer *t = r->t;

    if (r->is_speaker)
        printf("stopped by %s after step %zu of epoch %llu%s\n",
               stop_name(t->stop), t->skip, (unsigned long long)t->epoch + 1,
               t->stop != SIGUSR1 ? ""
               : *t->args->checkpoint
                   ? ", saved"
                   : ", not saved: there is no --checkpoint");
}

void report_epoch_cut(struct report *r)
{
    if (r->is_drawn)
        putchar('\n');
    r->is_drawn = 0;
}

static void print_test(const struct epoch_stats *s)
{
    printf("Test set: Average loss: %.4f, Accuracy: %.2f%%\n", s->test_loss,
           s->test_accuracy * 100);
}

/* Keep and print when --target-acc was reached. */
static void note_target(struct report *r, const struct epoch_stats *s)
{
    const struct trainer *t = r->t;

    if (!t->test.has_reached)
        return;
    r->past.target_epoch = t->epoch;
    r->past.target_seconds = now() - r->past.start;
    if (r->is_speaker && r->mode != PROGRESS_OFF)
        printf("Reached test accuracy %.6g, of %.6g wanted, after epoch %llu: "
               "%.1f second\n",
               s->test_accuracy, t->args->target_acc,
               (unsigned long long)t->epoch, r->past.target_seconds);
}

void report_test(struct report *r, const struct epoch_stats *s)
{
    if (r->is_speaker && r->mode != PROGRESS_OFF)
        print_test(s);
    r->past.tested = *s;
    note_target(r, s);
}

/* Print how long the exchange takes, and how much of it is hidden behind the computation,
 * where that is known. */
static void print_exchange(const struct phases *p, double ms)
{
    double hidden = phases_hidden(p);

    if (!isnan(hidden))
        printf(" EXCHANGE %.2f hidden %.0f%%", p->seconds[PHASE_EXCHANGE] * ms,
               100 * hidden);
}

/* Milliseconds of a step. */
static void print_breakdown(const struct epoch_stats *s)
{
    double ms = s->n_steps ? 1e3 / (double)s->n_steps : 0;

    printf("breakdown of rank 0, ms/step:");
    for (int i = PHASE_DATA; i <= PHASE_OPTIMIZER; i++)
        printf(" %s %.2f", phase_name((enum phase)i),
               s->phases.seconds[i] * ms);
    printf(" COMM %.2f", s->phases.seconds[PHASE_COMM] * ms);
    print_exchange(&s->phases, ms);
    printf(" all %.2f\n", s->seconds * ms);
}

static void print_epoch(struct report *r, const struct epoch_stats *s)
{
    size_t n = r->t->sampler.n_steps;

    if (r->mode == PROGRESS_OFF)
        return;
    if (r->mode == PROGRESS_BAR)
        putchar('\r');
    r->is_drawn = 0;
    print_bar(n, n);
    printf(" - %.0fs %.0fms/step - loss: %.4f - accuracy: %.4f - lr: %.4g - "
           "%.0f img/s - comm %.1f%%%s\n", s->seconds,
           s->seconds * 1e3 / (double)n, s->loss, s->accuracy, s->lr,
           s->images_per_s,
           s->seconds > 0 ? 100 * s->comm_seconds / s->seconds : 0,
           r->mode == PROGRESS_BAR ? "\033[K" : "");
    if (r->t->args->breakdown)
        print_breakdown(s);
    if (r->t->args->warmup_epochs == s->epoch)
        printf("Epoch %llu: finished gradual learning rate warmup to %.6g.\n",
               (unsigned long long)s->epoch, s->lr);
    if (r->t->args->elastic)
        printf("Images: %zu of %zu\n", s->n_counted, r->t->data.train.n);
    print_test(s);
}

int report_epoch(struct report *r, const struct epoch_stats *stats)
{
    size_t n = r->past.n_epochs + 1;
    struct epoch_stats *more;

    /* a rank died after the test, which was made again */
    if (r->past.n_epochs &&
        r->epochs[r->past.n_epochs - 1].epoch == stats->epoch) {
        n = r->past.n_epochs--;
        r->past.n_steps -= r->t->sampler.n_steps;
    }
    more = realloc(r->epochs, n * sizeof(*more));

    if (!more)
        return cannot_keep(n);
    r->epochs = more;
    r->epochs[r->past.n_epochs++] = r->past.tested = *stats;
    r->past.n_steps += r->t->sampler.n_steps;
    if (r->past.n_epochs == 1)
        r->past.first_end = now();
    if (r->is_speaker)
        print_epoch(r, stats);
    note_target(r, stats);
    return 0;
}

void report_own(struct report *r, const struct epoch_stats *own)
{
    double n = (double)own->n_images;

    if (r->t->args->verbose && n > 0)
        printf("rank %d | Epoch %llu | loss %.6f | accuracy %.6f\n",
               r->t->ddp->rank, (unsigned long long)own->epoch, own->loss / n,
               own->accuracy / n);
}

static void print_total(const struct report *r, double total, double but_first)
{
    printf("Procs %d Total time: %.1f second", r->t->ddp->size, total);
    if (r->past.n_epochs > 1)
        printf(" (without the first epoch: %.1f)", but_first);
    printf("\n");
}

int report_end(struct report *r, double max_rss)
{
    double total = now() - r->past.start;
    double but_first = r->past.n_epochs ? now() - r->past.first_end : 0;
    int st = 0;

    if (!r->is_speaker)
        return 0;
    if (r->mode != PROGRESS_OFF && r->t->args->target_acc > 0 &&
        !r->past.target_epoch)
        printf("Did not reach test accuracy %.6g; raise --epochs\n",
               r->t->args->target_acc);
    if (r->mode != PROGRESS_OFF)
        print_total(r, total, but_first);
    if (r->json) {
        json_t *object = report__result(r, total, but_first, max_rss);

        st = report_json(r, object);
        json_decref(object);
    }
    if (!st && (fflush(stdout) || ferror(stdout)))
        st = report__cannot_write("standard output");
    return st;
}
