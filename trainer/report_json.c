/* SPDX-License-Identifier: BSD-3-Clause */
/* report_json.c - one JSON object at the end. */
#include "trainer/report_json.h"
#include "trainer/choices.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/optim.h"
#include "trainer/train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define JSON_DIGITS 9

size_t report__most_state(const struct trainer *t)
{
    size_t most = 0;

    for (int r = 0; r < t->ddp->size; r++) {
        size_t n = ddp_n_own(t->ddp, r);

        most = n > most ? n : most;
    }
    return most * optim_arrays(t->optim.kind) * sizeof(float);
}

int report__cannot_write(const char *what)
{
    return train_cannot_write(what, "place");
}

int report__json_open(struct report *r)
{
    const char *path = r->t->args->json;
    int fd;

    if (!*path)
        return 0;
    if (!strcmp(path, "-")) {
        r->json = stdout;
        return 0;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    r->json = fd < 0 ? NULL : fdopen(fd, "w");
    return r->json ? 0 : report__cannot_write(path);
}

/* JSON has no NaN and no infinity: they become null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Return where rank 0's time went, if --breakdown asked for it, or null. */
static json_t *breakdown_object(const struct args *args, const struct phases *p)
{
    double hidden = phases_hidden(p);

    if (!args->breakdown)
        return json_null();
    return json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "data_s", p->seconds[PHASE_DATA],
        "forward_s", p->seconds[PHASE_FORWARD], "backward_s",
        p->seconds[PHASE_BACKWARD], "optimizer_s", p->seconds[PHASE_OPTIMIZER],
        "comm_s", p->seconds[PHASE_COMM], "exchange_s",
        isnan(hidden) ? json_null() : number(p->seconds[PHASE_EXCHANGE]),
        "hidden", number(hidden));
}

static json_t *epoch_object(const struct args *args,
                            const struct epoch_stats *s)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, "
                     "s:o}",
                     "epoch", (json_int_t)s->epoch, "loss", number(s->loss),
                     "acc", number(s->accuracy), "test_loss",
                     number(s->test_loss), "test_acc", number(s->test_accuracy),
                     "lr", number(s->lr), "seconds", number(s->seconds),
                     "images_per_s", number(s->images_per_s), "comm_exposed_s",
                     number(s->comm_seconds), "data_s", number(s->data_seconds),
                     "images", (json_int_t)s->n_counted, "breakdown",
                     breakdown_object(args, &s->phases));
}

static json_t *epochs_array(const struct report *r)
{
    json_t *all = json_array();

    for (size_t i = 0; all && i < r->past.n_epochs; i++)
        json_array_append_new(all, epoch_object(r->t->args, &r->epochs[i]));
    return all;
}

/* Return the images per second of the training, without the tests. */
static double images_per_second(const struct report *r)
{
    double seconds = 0, images = 0;

    for (size_t i = 0; i < r->past.n_epochs; i++) {
        seconds += r->epochs[i].seconds;
        images += r->epochs[i].seconds * r->epochs[i].images_per_s;
    }
    return seconds > 0 ? images / seconds : 0;
}

/* What --target-acc asked for, and when it was reached, or null. */
static json_t *target_object(const struct report *r)
{
    double wanted = r->t->args->target_acc;

    if (!(wanted > 0))
        return json_null();
    return json_pack(
        "{s:f, s:o, s:o}", "acc", wanted, "epoch",
        r->past.target_epoch ? json_integer((json_int_t)r->past.target_epoch)
                             : json_null(),
        "seconds",
        r->past.target_epoch ? number(r->past.target_seconds) : json_null());
}

/* Return the options that decided the results, by their names in --help.  null:
 * the option was left to the optimizer, or is off.  A test alone has none. */
static json_t *options_object(const struct args *args)
{
    json_t *all = args->eval_only ? json_null() : json_object();
    struct choice c;

    for (size_t i = 0; json_is_object(all) && choice_at(&c, args, i); i++)
        json_object_set_new(all, c.name,
                            *c.text ? json_string(c.text) : json_null());
    return all;
}

/* Name rank 0's GPU. */
static json_t *gpu_text(const struct trainer *t)
{
    char text[128];

    t->device->about.say(text, sizeof(text));
    return *text ? json_string(text) : json_null();
}

json_t *report__result(const struct report *r, double total, double but_first,
                       double max_rss)
{
    const struct trainer *t = r->t;
    char crc[16];

    snprintf(crc, sizeof(crc), "%08x", t->param_crc);
    return json_pack(
        "{s:i, s:s, s:s, s:i, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:o, "
        "s:s, s:I, s:s, s:o, s:s, s:I, s:s, s:i, s:I, s:s, s:o, s:o, s:o, s:o}",
        "version", 1, "model", t->args->model, "dataset", t->args->dataset,
        "procs", t->ddp->size, "nodes", t->ddp->n_hosts, "batch_per_proc",
        (json_int_t)t->args->batch_size, "steps", (json_int_t)r->past.n_steps,
        "epochs", epochs_array(r), "total_s", number(total),
        "total_s_but_first", number(but_first), "images_per_s",
        number(images_per_second(r)), "bytes_reduced",
        (json_int_t)t->ddp->bytes, "max_rss_mib", number(max_rss),
        "param_crc32", crc, "seed", (json_int_t)t->args->seed, "device",
        t->device->name, "gpu", gpu_text(t), "precision",
        precision_name((enum precision)t->args->precision), "threads",
        (json_int_t)t->args->threads, "algo", t->ddp->algo, "zero",
        t->args->zero, "optim_bytes", (json_int_t)report__most_state(t),
        "lr_schedule", t->args->schedule.text, "target", target_object(r),
        "test_loss", number(r->past.tested.test_loss), "test_acc",
        number(r->past.tested.test_accuracy), "options",
        options_object(t->args));
}

int report_json(struct report *r, const struct json_t *object)
{
    size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(JSON_DIGITS);
    int st;

    if (!object)
        return train_fail("out of memory for the JSON object; leave --json "
                          "out");
    if (r->json != stdout && ftruncate(fileno(r->json), 0) && errno != EINVAL)
        return report__cannot_write(
            r->t->args->json); /* EINVAL: it is no file */
    errno = 0;
    st = json_dumpf(object, r->json, flags) || fputc('\n', r->json) == EOF ||
         fflush(r->json);
    return st ? report__cannot_write(r->t->args->json) : 0;
}
