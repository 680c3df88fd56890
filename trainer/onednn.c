/* SPDX-License-Identifier: BSD-3-Clause */
/* onednn.c - the only file that knows oneDNN's C interface (2.x).
 *
 * Each pass of a convolution is a primitive with memory objects made once;
 * running it sets data pointers and executes.  Activations are in the layout
 * that the layers agreed on, weights in the order that the pass's kernel asks
 * for: they are reordered when they change (once a step), not at each pass.
 */
#include "trainer/onednn.h"
#include "trainer/error.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

enum { FORWARD, BACKWARD_IN, BACKWARD_WEIGHTS, N_PASSES };

static const char *const pass_names[N_PASSES] = {
    "forward", "backward-data", "backward-weights"};

/* One pass: its kernel, and the weights in that kernel's order.  When gradients
 * of weights are brought back to the plain order, they are added to the
 * caller's. */
struct conv_pass {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t run;
    dnnl_memory_t weights; /* owns its buffer */
    dnnl_primitive_t turn; /* to or from the plain order */
    const char *kernel;    /* oneDNN's name of the kernel; owned by the desc */
};

struct onednn_conv {
    struct onednn_conv_config config;
    dnnl_memory_desc_t in_desc, out_desc, weights_desc, biases_desc;
    struct conv_pass passes[N_PASSES];
    int n_passes;
    dnnl_memory_t in, out, plain, biases; /* on the caller's buffers */
    float *dbiases;                       /* one pass's sums */
    size_t n_biases;
    char kernels[256];
};

static int check(dnnl_status_t status, const char *call)
{
    if (status == dnnl_success)
        return 0;
    return train_fail("oneDNN: %s failed with status %d; check that the "
                      "library is 2.x and memory is free",
                      call, (int)status);
}

/* oneDNN takes its threads from OpenMP if it was built with it.  The function
 * is looked up at run time, so that any other build of oneDNN works as well. */
static int set_threads(int threads)
{
    long most = sysconf(_SC_NPROCESSORS_ONLN);
    void *found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    void (*set)(int);

    if (threads > most)
        return train_refuse("--threads %d is more than this machine's %ld "
                            "processors; use %ld at most",
                            threads, most, most);
    if (!found)
        return threads == 1 ? 0
                            : train_refuse("this oneDNN has no OpenMP, so "
                                           "--threads %d cannot be set; use "
                                           "--threads 1",
                                           threads);
    memcpy(&set, &found, sizeof(set));
    set(threads);
    return 0;
}

int onednn_init(int threads)
{
    if (set_threads(threads) ||
        check(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine_create"))
        return -1;
    return check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags),
                 "stream_create");
}

void onednn_fini(void)
{
    if (stream)
        dnnl_stream_destroy(stream);
    if (engine)
        dnnl_engine_destroy(engine);
    stream = NULL;
    engine = NULL;
}

const char *onednn_version(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();

    snprintf(text, sizeof(text), "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

/* ---- a convolution's descriptors ---- */

static void describe_map(dnnl_memory_desc_t *desc, int chunk,
                         const struct shape *s)
{
    dnnl_dims_t dims = {chunk, s->channels, s->height, s->width};
    dnnl_format_tag_t tag = s->block == s->channels ? dnnl_nhwc
                            : s->block == 16        ? dnnl_nChw16c
                                                    : dnnl_nChw8c;

    dnnl_memory_desc_init_by_tag(desc, 4, dims, dnnl_f32, tag);
}

static void describe(struct onednn_conv *c)
{
    const struct onednn_conv_config *g = &c->config;
    dnnl_dims_t weights = {g->out.channels, g->in.channels, g->kernel,
                           g->kernel};
    dnnl_dims_t biases = {g->out.channels};

    describe_map(&c->in_desc, g->chunk, &g->in);
    describe_map(&c->out_desc, g->chunk, &g->out);
    dnnl_memory_desc_init_by_tag(&c->weights_desc, 4, weights, dnnl_f32,
                                 dnnl_oihw);
    dnnl_memory_desc_init_by_tag(&c->biases_desc, 1, biases, dnnl_f32, dnnl_x);
    c->n_biases = g->has_biases ? (size_t)g->out.channels : 0;
}

static dnnl_status_t make_desc(struct onednn_conv *c, int pass)
{
    const struct onednn_conv_config *g = &c->config;
    const dnnl_dims_t steps = {g->stride, g->stride}, rim = {g->pad, g->pad};
    const dnnl_memory_desc_t *biases = g->has_biases ? &c->biases_desc : NULL;
    dnnl_memory_desc_t any = c->weights_desc;
    dnnl_convolution_desc_t desc;
    dnnl_status_t st;

    any.format_kind = dnnl_format_kind_any;
    if (pass == FORWARD)
        st = dnnl_convolution_forward_desc_init(
            &desc, dnnl_forward_training, dnnl_convolution_direct, &c->in_desc,
            &any, biases, &c->out_desc, steps, rim, rim);
    else if (pass == BACKWARD_IN)
        st = dnnl_convolution_backward_data_desc_init(
            &desc, dnnl_convolution_direct, &c->in_desc, &any, &c->out_desc,
            steps, rim, rim);
    else
        st = dnnl_convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, &c->in_desc, &any, biases,
            &c->out_desc, steps, rim, rim);
    if (st != dnnl_success)
        return st;
    return dnnl_primitive_desc_create(&c->passes[pass].desc, &desc, NULL,
                                      engine, c->passes[FORWARD].desc);
}

/* Choose the pass's kernel.  Returns 1 if oneDNN has only its reference code,
 * which is too slow to train with. */
static int choose_kernel(struct onednn_conv *c, int pass)
{
    struct conv_pass *p = &c->passes[pass];

    if (make_desc(c, pass) != dnnl_success)
        return 1;
    if (check(dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0,
                                        &p->kernel), "impl_info_str"))
        return -1;
    return !strncmp(p->kernel, "ref", 3);
}

static int choose_kernels(struct onednn_conv *c)
{
    c->n_passes = c->config.is_training ? N_PASSES : 1;
    for (int i = 0; i < c->n_passes; i++) {
        int st = choose_kernel(c, i);

        if (st)
            return st < 0 ? -1
                          : train_fail("oneDNN %s has no fast %s convolution "
                                       "for this processor; use another "
                                       "machine or a newer oneDNN",
                                       onednn_version(), pass_names[i]);
        snprintf(c->kernels + strlen(c->kernels),
                 sizeof(c->kernels) - strlen(c->kernels), "%s%s",
                 i ? " " : "", c->passes[i].kernel);
    }
    return 0;
}

/* ---- primitives and memory ---- */

/* Make *attr say that results are added to what is there. */
static int make_adding(dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t ops = NULL;
    int st;

    st = check(dnnl_primitive_attr_create(attr), "primitive_attr_create") ||
         check(dnnl_post_ops_create(&ops), "post_ops_create") ||
         check(dnnl_post_ops_append_sum(ops, 1), "post_ops_append_sum") ||
         check(dnnl_primitive_attr_set_post_ops(*attr, ops), "set_post_ops");
    if (ops)
        dnnl_post_ops_destroy(ops); /* the attribute has a copy */
    return st ? -1 : 0;
}

static int make_turn(struct conv_pass *p, const dnnl_memory_desc_t *from,
                     const dnnl_memory_desc_t *to, int adds)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t desc = NULL;
    int st = adds ? make_adding(&attr) : 0;

    if (!st)
        st = check(dnnl_reorder_primitive_desc_create(&desc, from, engine, to,
                                                      engine, attr),
                   "reorder_primitive_desc_create");
    if (!st)
        st = check(dnnl_primitive_create(&p->turn, desc), "primitive_create");
    if (desc)
        dnnl_primitive_desc_destroy(desc);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return st;
}

static int make_pass(struct onednn_conv *c, int pass)
{
    struct conv_pass *p = &c->passes[pass];
    int is_diff = pass == BACKWARD_WEIGHTS;
    const dnnl_memory_desc_t *own = dnnl_primitive_desc_query_md(
        p->desc, is_diff ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
        0);

    if (check(dnnl_primitive_create(&p->run, p->desc), "primitive_create") ||
        check(dnnl_memory_create(&p->weights, own, engine,
                                 DNNL_MEMORY_ALLOCATE), "memory_create"))
        return -1;
    return is_diff ? make_turn(p, own, &c->weights_desc, 1)
                   : make_turn(p, &c->weights_desc, own, 0);
}

static int make_memory(struct onednn_conv *c)
{
    const struct {
        dnnl_memory_t *memory;
        const dnnl_memory_desc_t *desc;
    } all[] = {{&c->in, &c->in_desc},
               {&c->out, &c->out_desc},
               {&c->plain, &c->weights_desc},
               {&c->biases, &c->biases_desc}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (check(dnnl_memory_create(all[i].memory, all[i].desc, engine,
                                     DNNL_MEMORY_NONE), "memory_create"))
            return -1;
    c->dbiases = calloc(c->n_biases + 1, sizeof(float));
    if (!c->dbiases)
        return train_fail("out of memory for a convolution's gradients; use "
                          "fewer ranks on this machine");
    return 0;
}

int onednn_conv_create(struct onednn_conv **conv,
                       const struct onednn_conv_config *config)
{
    struct onednn_conv *c = calloc(1, sizeof(*c));

    if (!c)
        return train_fail("out of memory for a convolution; use fewer ranks "
                          "on this machine");
    c->config = *config;
    describe(c);
    if (choose_kernels(c) || make_memory(c))
        goto fail;
    for (int i = 0; i < c->n_passes; i++)
        if (make_pass(c, i))
            goto fail;
    *conv = c;
    return 0;

fail:
    onednn_conv_destroy(c);
    return -1;
}

static void destroy_pass(struct conv_pass *p)
{
    if (p->turn)
        dnnl_primitive_destroy(p->turn);
    if (p->weights)
        dnnl_memory_destroy(p->weights);
    if (p->run)
        dnnl_primitive_destroy(p->run);
    if (p->desc)
        dnnl_primitive_desc_destroy(p->desc);
}

void onednn_conv_destroy(struct onednn_conv *c)
{
    dnnl_memory_t all[4];

    if (!c)
        return;
    memcpy(all, (dnnl_memory_t[]){c->in, c->out, c->plain, c->biases},
           sizeof(all));
    for (int i = 0; i < 4; i++)
        if (all[i])
            dnnl_memory_destroy(all[i]);
    for (int i = N_PASSES; i-- > 0;)
        destroy_pass(&c->passes[i]);
    free(c->dbiases);
    free(c);
}

const char *onednn_conv_kernels(const struct onednn_conv *c)
{
    return c->kernels;
}

int onednn_block(void)
{
    static const int blocks[] = {16, 8};

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        struct onednn_conv_config g = {
            .chunk = 2,
            .in = {32, 8, 8, blocks[i]},
            .out = {64, 6, 6, blocks[i]},
            .kernel = 3,
            .stride = 1,
            .has_biases = 1,
            .is_training = 1,
        };
        struct onednn_conv *c;

        if (onednn_conv_create(&c, &g))
            continue;
        onednn_conv_destroy(c);
        return blocks[i];
    }
    return 0;
}

/* ---- running ---- */

static int run(dnnl_primitive_t primitive, int n, const dnnl_exec_arg_t *args)
{
    return check(dnnl_primitive_execute(primitive, stream, n, args),
                 "primitive_execute") ||
                   check(dnnl_stream_wait(stream), "stream_wait")
               ? -1
               : 0;
}

static void point(dnnl_memory_t memory, const float *at)
{
    dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)at);
}

static int turn(struct conv_pass *p, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};

    return run(p->turn, 2, args);
}

int onednn_conv_load(struct onednn_conv *c, const float *weights)
{
    point(c->plain, weights);
    for (int i = 0; i < c->n_passes && i < BACKWARD_WEIGHTS; i++)
        if (turn(&c->passes[i], c->plain, c->passes[i].weights))
            return -1;
    return 0;
}

int onednn_conv_forward(struct onednn_conv *c, const float *in,
                        const float *biases, float *out)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, c->in},
        {DNNL_ARG_WEIGHTS, c->passes[FORWARD].weights},
        {DNNL_ARG_DST, c->out},
        {DNNL_ARG_BIAS, c->biases}}; /* last, to be left out */

    point(c->in, in);
    point(c->biases, biases);
    point(c->out, out);
    return run(c->passes[FORWARD].run, 3 + c->config.has_biases, args);
}

int onednn_conv_backward_in(struct onednn_conv *c, const float *dout,
                            float *din)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_DIFF_DST, c->out},
        {DNNL_ARG_WEIGHTS, c->passes[BACKWARD_IN].weights},
        {DNNL_ARG_DIFF_SRC, c->in}};

    point(c->out, dout);
    point(c->in, din);
    return run(c->passes[BACKWARD_IN].run, 3, args);
}

int onednn_conv_backward_weights(struct onednn_conv *c, const float *in,
                                 const float *dout, float *dweights,
                                 float *dbiases)
{
    struct conv_pass *p = &c->passes[BACKWARD_WEIGHTS];
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, c->in},
                                    {DNNL_ARG_DIFF_DST, c->out},
                                    {DNNL_ARG_DIFF_WEIGHTS, p->weights},
                                    {DNNL_ARG_DIFF_BIAS, c->biases}};

    point(c->in, in);
    point(c->out, dout);
    point(c->biases, c->dbiases);
    point(c->plain, dweights);
    if (run(p->run, 3 + c->config.has_biases, args) ||
        turn(p, p->weights, c->plain))
        return -1;
    for (size_t i = 0; i < c->n_biases; i++)
        dbiases[i] += c->dbiases[i];
    return 0;
}

int onednn_multiply(const struct onednn_product *p, const float *a,
                    const float *b, float *c)
{
    return check(dnnl_sgemm(p->a_turned ? 'T' : 'N', p->b_turned ? 'T' : 'N',
                            p->rows, p->columns, p->inner, 1.0f, a,
                            p->a_turned ? p->rows : p->inner, b,
                            p->b_turned ? p->inner : p->columns, p->beta, c,
                            p->columns),
                 "sgemm");
}
