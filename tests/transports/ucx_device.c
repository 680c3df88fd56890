/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_device.c - can this machine's UCX send from and to memory of a GPU, and does it
 * while a stream waits?  Of a process to itself, with what the transport uses of UCX.
 *
 *     ucx_device [wait]    0; 77: it knows no CUDA; 2: it stands still; 1: else
 */
#include <cuda.h>
#include <ucp/api/ucp.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST ((size_t)4 << 20) /* bytes */
#define PATIENCE_S 5

#define NEED(call)                                                             \
    do {                                                                       \
        int rc_ = (int)(call);                                                 \
        if (rc_) {                                                             \
            printf("%s: %d\n", #call, rc_);                                    \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

static ucp_worker_h workers[2];
static void *came; /* what arrived */
static int is_taken;

static ucs_status_t arrived(void *arg, const void *header, size_t header_len,
                            void *body, size_t len,
                            const ucp_am_recv_param_t *param)
{
    (void)arg, (void)header, (void)header_len, (void)len, (void)param;
    came = body;
    return UCS_INPROGRESS; /* it is kept, by UCP_AM_FLAG_PERSISTENT_DATA */
}

static void taken(void *request, ucs_status_t rc, size_t len, void *arg)
{
    (void)len, (void)arg;
    NEED(rc);
    ucp_request_free(request);
    is_taken = 1;
}

/* Move on until that is there. */
static void until(int (*is_there)(void *), void *arg)
{
    while (!is_there(arg)) {
        ucp_worker_progress(workers[0]);
        ucp_worker_progress(workers[1]);
    }
}

/* Within UCX as well. */
static void give_up(int signal)
{
    static const char words[] = "it stands still\n";
    ssize_t n = write(STDOUT_FILENO, words, sizeof(words) - 1);

    (void)signal;
    _exit(n < 0 ? 1 : 2);
}

static int has_come(void *arg) { return (void)arg, came != NULL; }
static int is_received(void *arg) { return (void)arg, is_taken; }

static int is_sent(void *request)
{
    return ucp_request_check_status(request) != UCS_INPROGRESS;
}

/* ---- set up -------------------------------------------------------------------- */

static ucp_context_h open_ucx(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM};
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    ucp_context_h context;

    NEED(ucp_init(&params, NULL, &context));
    NEED(ucp_context_query(context, &attr));
    if (attr.memory_types & (1u << UCS_MEMORY_TYPE_CUDA))
        return context;
    printf("UCX %s knows no CUDA\n", ucp_get_version_string());
    exit(77);
}

static ucp_ep_h join(ucp_context_h context)
{
    ucp_worker_params_t params = {0};
    ucp_am_handler_param_t handler = {.field_mask =
                                          UCP_AM_HANDLER_PARAM_FIELD_ID |
                                          UCP_AM_HANDLER_PARAM_FIELD_CB |
                                          UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                      .cb = arrived,
                                      .flags = UCP_AM_FLAG_PERSISTENT_DATA};
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS};
    ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                          .err_mode = UCP_ERR_HANDLING_MODE_PEER};
    ucp_ep_h ep;

    for (int i = 0; i < 2; i++)
        NEED(ucp_worker_create(context, &params, &workers[i]));
    NEED(ucp_worker_set_am_recv_handler(workers[1], &handler));
    NEED(ucp_worker_query(workers[1], &attr));
    to.address = attr.address;
    NEED(ucp_ep_create(workers[0], &to, &ep));
    return ep;
}

static void open_cuda(CUdeviceptr memory[2], const void *bytes)
{
    CUcontext ctx;

    NEED(cuInit(0));
    NEED(cuDevicePrimaryCtxRetain(&ctx, 0));
    NEED(cuCtxPushCurrent(ctx));
    for (int i = 0; i < 2; i++)
        NEED(cuMemAlloc(&memory[i], MOST));
    NEED(cuMemcpyHtoD(memory[0], bytes, MOST));
    NEED(cuCtxSynchronize());
}

/* A stream that waits for good, as one does for the message of another rank. */
static void hold_a_stream(void)
{
    CUstream stream;
    CUdeviceptr word;

    NEED(cuMemAlloc(&word, 4));
    NEED(cuMemsetD8(word, 0, 4));
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
}

/* ---- sending ------------------------------------------------------------------- */

static void pass(ucp_ep_h ep, const CUdeviceptr memory[2], size_t len)
{
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                               .memory_type = UCS_MEMORY_TYPE_CUDA};
    ucp_request_param_t to = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                                              UCP_OP_ATTR_FIELD_CALLBACK,
                              .memory_type = UCS_MEMORY_TYPE_CUDA,
                              .cb.recv_am = taken};
    void *sent, *received;

    came = NULL;
    is_taken = 0;
    sent = ucp_am_send_nbx(ep, 0, "head", 4, (void *)memory[0], len, &how);
    NEED(UCS_PTR_IS_ERR(sent));
    until(has_come, NULL);
    received =
        ucp_am_recv_data_nbx(workers[1], came, (void *)memory[1], len, &to);
    NEED(UCS_PTR_IS_ERR(received));
    if (received)
        until(is_received, NULL);
    if (!sent)
        return;
    until(is_sent, sent);
    NEED(ucp_request_check_status(sent));
    ucp_request_free(sent);
}

int main(int argc, char **argv)
{
    static uint32_t bytes[MOST / 4], back[MOST / 4];
    int waits = argc > 1 && !strcmp(argv[1], "wait");
    CUdeviceptr memory[2];
    ucp_ep_h ep;

    for (size_t i = 0; i < MOST / 4; i++)
        bytes[i] = (uint32_t)(i * 2654435761u);
    signal(SIGALRM, give_up);
    ep = join(open_ucx());
    open_cuda(memory, bytes);
    if (waits)
        hold_a_stream();
    for (size_t len = 4; len <= MOST; len *= 4) {
        NEED(cuMemsetD8(memory[1], 0, len));
        alarm(PATIENCE_S);
        pass(ep, memory, len);
        NEED(cuMemcpyDtoH(back, memory[1], len));
        NEED(memcmp(back, bytes, len) != 0);
    }
    printf("right: UCX %s from GPU to GPU%s\n", ucp_get_version_string(),
           waits ? ", beside a stream that waits" : "");
    fflush(stdout);
    _Exit(0); /* the stream waits still */
}
