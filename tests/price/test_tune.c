/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tune.c - tuning files: what they choose, and that whatever is in them is
 * read, or refused in one sentence; the limits that they set. */
#include "lib/price/tune.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char good[] =
    "{\"version\": 1, \"machine\": {\"ranks\": 4},\n"
    " \"links\": [{\"level\": \"host\", \"alpha\": 2e-6, \"beta\": 3e-10},\n"
    "           {\"level\": \"network\", \"alpha\": 5e-6, \"beta\": 1e-9}],\n"
    " \"entries\": [\n"
    "  {\"collective\": \"allreduce\", \"ranks\": [2, 8], \"hosts\": [1, 1],\n"
    "   \"bytes\": [0, 999], \"type\": \"f32\", \"algorithm\": \"ring\",\n"
    "   \"later\": {\"any\": [1, 2]}},\n"
    "  {\"collective\": \"allreduce\", \"bytes\": [0, 999],\n"
    "   \"algorithm\": \"binomial\"},\n"
    "  {\"collective\": \"broadcast\", \"algorithm\": \"chain\"}],\n"
    " \"limits\": {\"shm_cell\": 65536, \"cma_min\": \"1.5M\"}}\n";

static struct coll__tune *parse(const char *text)
{
    struct coll__tune *tune = NULL;

    ck_assert_int_eq(coll__tune_parse("t", text, strlen(text), &tune), COLL_OK);
    ck_assert_ptr_nonnull(tune);
    return tune;
}

static const char *choice(const struct coll__tune *tune,
                          const struct coll__problem *pb, int n_hosts)
{
    const struct coll__algo *algo = coll__tune_find(tune, pb, n_hosts);

    return algo ? algo->name : "none";
}

START_TEST(the_first_entry_that_fits_wins)
{
    struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                               .type = COLL_F32,
                               .nranks = 4,
                               .count = 100};
    struct coll__tune *tune = parse(good);

    ck_assert_str_eq(choice(tune, &pb, 1), "ring");
    ck_assert_str_eq(choice(tune, &pb, 2), "binomial"); /* hosts */
    pb.nranks = 9;
    ck_assert_str_eq(choice(tune, &pb, 1), "binomial"); /* ranks */
    pb.nranks = 8;
    ck_assert_str_eq(choice(tune, &pb, 1), "ring");
    pb.type = COLL_I32;
    ck_assert_str_eq(choice(tune, &pb, 1), "binomial");
    pb.count = 250;
    ck_assert_str_eq(choice(tune, &pb, 1), "none"); /* 1000 bytes */
    pb.collective = COLL_BROADCAST;
    ck_assert_str_eq(choice(tune, &pb, 1), "chain");
    pb.collective = COLL_BARRIER;
    ck_assert_str_eq(choice(tune, &pb, 1), "none");
    ck_assert_str_eq(choice(NULL, &pb, 1), "none");
    coll__tune_free(tune);
}
END_TEST

/* The ring is not canonical, the binomial tree is. */
START_TEST(an_entry_that_cannot_serve_is_passed_over)
{
    struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                               .type = COLL_F32,
                               .order = ORDER_CANONICAL,
                               .nranks = 4,
                               .count = 100};
    struct coll__tune *tune = parse(good);

    ck_assert_str_eq(choice(tune, &pb, 1), "binomial");
    coll__tune_free(tune);
}
END_TEST

START_TEST(measured_links_replace_prices)
{
    struct coll__level level = {.name = "network",
                                .alpha = 1,
                                .beta = 2e-9,
                                .share = 2e-9,
                                .gap = 0.5};
    struct coll__tune *tune = parse(good);

    ck_assert_int_eq(coll__tune_level(tune, &level), 1);
    ck_assert(level.alpha == 5e-6 && level.beta == 1e-9);
    ck_assert(level.share == 1e-9 && level.gap < 5e-6);
    strcpy(level.name, "numa");
    ck_assert_int_eq(coll__tune_level(tune, &level), 0);
    ck_assert_int_eq(coll__tune_level(NULL, &level), 0);
    coll__tune_free(tune);
}
END_TEST

START_TEST(other_content_has_another_hash)
{
    struct coll__tune *a = parse(good), *b = parse("{\"version\": 1}");
    struct coll__tune *c = parse("{\"version\": 1} ");

    ck_assert_uint_ne(coll__tune_hash(a), coll__tune_hash(b));
    ck_assert_uint_ne(coll__tune_hash(c), coll__tune_hash(b));
    ck_assert_uint_ne(coll__tune_hash(b), 0);
    ck_assert_uint_eq(coll__tune_hash(NULL), 0);
    coll__tune_free(a);
    coll__tune_free(b);
    coll__tune_free(c);
}
END_TEST

#define ENTRY(fields) "{\"version\": 1, \"entries\": [{" fields "}]}"
#define LIMITS(fields) "{\"version\": 1, \"limits\": {" fields "}}"
#define LINK(fields) "{\"version\": 1, \"links\": [{" fields "}]}"
#define RING "\"collective\": \"allreduce\", \"algorithm\": \"ring\""

static const struct {
    const char *text, *words;
} wrong[] = {
    {"", "line 1"},
    {"{\"version\": 1,\n\"entries\": [}\n", "line 2"},
    {"[]", "'version'"},
    {"{}", "'version'"},
    {"{\"version\": 2}", "'version'"},
    {"{\"version\": 1, \"entries\": 3}", "'entries'"},
    {"{\"version\": 1, \"entries\": [7]}", "entries[0]"},
    {ENTRY("\"algorithm\": \"ring\""), "'collective'"},
    {ENTRY("\"collective\": \"all\", \"algorithm\": \"ring\""), "'collective'"},
    {ENTRY("\"collective\": \"allreduce\""), "'algorithm'"},
    {ENTRY("\"collective\": \"allreduce\", \"algorithm\": \"chain\""),
     "'algorithm'"},
    {ENTRY("\"collective\": \"allreduce\", \"algorithm\": 5"), "'algorithm'"},
    {ENTRY(RING ", \"ranks\": 4"), "'ranks'"},
    {ENTRY(RING ", \"ranks\": [4]"), "'ranks'"},
    {ENTRY(RING ", \"ranks\": [4, 2]"), "'ranks'"},
    {ENTRY(RING ", \"hosts\": [-1, 2]"), "'hosts'"},
    {ENTRY(RING ", \"bytes\": [0, 2, 3]"), "'bytes'"},
    {ENTRY(RING ", \"bytes\": [0, 1e3]"), "'bytes'"},
    {ENTRY(RING ", \"type\": \"float\""), "'type'"},
    {LINK("\"alpha\": 1"), "links[0]: field 'level'"},
    {LINK("\"level\": \"host\", \"alpha\": -1, \"beta\": 0"), "'alpha'"},
    {LINK("\"level\": \"host\", \"alpha\": 0"), "'beta'"},
    {LINK("\"level\": \"a name that is too long\""), "'level'"},
    {"{\"version\": 1, \"limits\": [3]}", "'limits'"},
    {LIMITS("\"shm_slot\": -1"), "'shm_slot' must be a whole number from 0 to "
                                 "65536"},
    {LIMITS("\"shm_slot\": 65537"), "'shm_slot'"},
    {LIMITS("\"cma_max\": 1.5"), "'cma_max'"},
    {LIMITS("\"cma_max\": \"many\""), "'cma_max'"},
    {LIMITS("\"cma_max\": \"2T\""), "'cma_max'"},
    {LIMITS("\"shm_cell\": 4096, \"mem_min\": null"), "'mem_min'"},
};

/* _i: which of them. */
START_TEST(what_is_wrong_is_named)
{
    struct coll__tune *tune = NULL;

    ck_assert_int_eq(coll__tune_parse("my.json", wrong[_i].text,
                                      strlen(wrong[_i].text), &tune),
                     COLL_ERR_INVALID);
    ck_assert_ptr_null(tune);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "my.json"));
    ck_assert_msg(strstr(coll_last_error(), wrong[_i].words) != NULL, "%s",
                  coll_last_error());
}
END_TEST

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void open_file(int status)
{
    struct coll__tune *tune;

    ck_assert_int_eq(coll__tune_open(&tune), status);
    coll__tune_free(tune);
}

START_TEST(limits_hold_until_another_file_is_read)
{
    char path[] = "test_tune.XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_uint_eq(coll__limit(LIMIT_SHM_CELL), 128 << 10);
    setenv("COLL_TUNE_FILE", path, 1);
    write_file(path, good);
    open_file(COLL_OK);
    ck_assert_uint_eq(coll__limit(LIMIT_SHM_CELL), 64 << 10);
    ck_assert_uint_eq(coll__limit(LIMIT_CMA_MIN), 3 << 19);
    ck_assert_uint_eq(coll__limit(LIMIT_CMA_MAX), 64 << 20);
    write_file(path, LIMITS("\"shm_cell\": -5"));
    open_file(COLL_ERR_INVALID);
    ck_assert_uint_eq(coll__limit(LIMIT_SHM_CELL), 64 << 10);
    write_file(path, LIMITS("\"cma_max\": 0"));
    open_file(COLL_OK);
    ck_assert_uint_eq(coll__limit(LIMIT_CMA_MIN), 64 << 10);
    ck_assert_uint_eq(coll__limit(LIMIT_CMA_MAX), 0);
    unlink(path);
    unsetenv("COLL_TUNE_FILE");
    open_file(COLL_OK);
    ck_assert_uint_eq(coll__limit(LIMIT_CMA_MAX), 64 << 20);
}
END_TEST

static char heard[256];

static void hear(enum coll_log_level level, const char *part, const char *text,
                 void *arg)
{
    (void)part, (void)arg;
    if (level == COLL_LOG_WARN)
        snprintf(heard, sizeof(heard), "%s", text);
}

START_TEST(a_limit_that_there_is_not_is_warned_of)
{
    struct coll__tune *tune;

    coll_set_log_handler(hear, NULL);
    tune = parse(LIMITS("\"shm_cel\": 4096"));
    coll__log_done(COLL_OK);
    ck_assert_str_eq(heard, "t: limits: 'shm_cel' is no limit; did you mean "
                            "'shm_cell'?");
    coll__tune_free(tune);
}
END_TEST

START_TEST(files_are_read_and_their_lack_is_explained)
{
    char path[] = "test_tune.XXXXXX";
    struct coll__tune *tune = NULL;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, good, strlen(good)), (int)strlen(good));
    close(fd);
    ck_assert_int_eq(coll__tune_load(path, &tune), COLL_OK);
    coll__tune_free(tune);
    unlink(path);
    ck_assert_int_eq(coll__tune_load(path, &tune), COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "No such file"));
    ck_assert_int_eq(coll__tune_load("/", &tune), COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "directory"));
}
END_TEST

/* Change, drop and repeat bytes: it must parse or be refused, and what parses
 * can be asked. */
START_TEST(spoilt_files_never_do_harm)
{
    static const char bytes[] = "{}[]\",:0123456789-+.e\\\n\0nulltrue\xff";
    unsigned seed = (unsigned)_i;
    char text[sizeof(good) + 64];

    for (int round = 0; round < 2000; round++) {
        struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                                   .type = COLL_F32,
                                   .nranks = 4,
                                   .count = (size_t)rand_r(&seed)};
        struct coll__tune *tune = NULL;
        size_t len = sizeof(good) - 1;

        memcpy(text, good, len);
        for (int n = rand_r(&seed) % 4; n >= 0; n--) {
            size_t at = (size_t)rand_r(&seed) % len;
            size_t some = (size_t)rand_r(&seed) % 16;

            if (rand_r(&seed) % 4)
                text[at] = bytes[(size_t)rand_r(&seed) % sizeof(bytes)];
            else if (rand_r(&seed) % 2)
                len = at + 1;
            else if (at + some < len)
                memmove(text + at, text + at + some, len -= at + some);
            len = len ? len : 1;
        }
        if (coll__tune_parse("t", text, len, &tune) == COLL_OK)
            coll__tune_find(tune, &pb, 1);
        else
            ck_assert_ptr_null(tune);
        coll__tune_free(tune);
        coll__log_done(COLL_OK); /* to the handler, which is quiet */
    }
}
END_TEST

static void quiet(enum coll_log_level level, const char *part, const char *text,
                  void *arg)
{
    (void)level;
    (void)part;
    (void)text;
    (void)arg;
}

int main(void)
{
    Suite *suite = suite_create("tune");
    TCase *cases = tcase_create("tune");

    coll_set_log_handler(quiet, NULL);
    tcase_add_test(cases, the_first_entry_that_fits_wins);
    tcase_add_test(cases, an_entry_that_cannot_serve_is_passed_over);
    tcase_add_test(cases, measured_links_replace_prices);
    tcase_add_test(cases, other_content_has_another_hash);
    tcase_add_loop_test(cases, what_is_wrong_is_named, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_test(cases, limits_hold_until_another_file_is_read);
    tcase_add_test(cases, a_limit_that_there_is_not_is_warned_of);
    tcase_add_test(cases, files_are_read_and_their_lack_is_explained);
    tcase_add_loop_test(cases, spoilt_files_never_do_harm, 0, 5);
    tcase_set_timeout(cases, 60);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
