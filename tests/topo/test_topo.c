/* SPDX-License-Identifier: BSD-3-Clause */
/* test_topo.c - recorded machines replayed, files that are none, and where a
 * process is. */
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "lib/topo/machine.h"
#include "lib/topo/gpus.h"
#include "lib/topo/topo.h"
#include "lib/util/util.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TEXT 65536

static const char *fixture(const char *name)
{
    return fixture_file("topo", name);
}

static size_t read_file(const char *path, char text[MAX_TEXT])
{
    FILE *file = fopen(path, "r");
    size_t len;

    ck_assert_msg(file != NULL, "no file %s", path);
    len = fread(text, 1, MAX_TEXT - 1, file);
    fclose(file);
    text[len] = '\0';
    return len;
}

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "w");

    ck_assert(file && fwrite(text, 1, len, file) == len && !fclose(file));
}

static char *export_file(const char *path, enum coll_topo_format format)
{
    char *text = NULL;

    setenv("COLL_TOPO_FILE", path, 1);
    ck_assert_msg(!coll_topo_export(format, &text), "%s", coll_last_error());
    return text;
}

static const char *const machines[] = {"two_sockets", "four_numa",
                                       "gpus_nvswitch", "gpus_pcie"};

/* ---- recorded machines ------------------------------------------------- */

START_TEST(recorded_machine_prints_as_the_tree_beside_it)
{
    char name[64], want[MAX_TEXT], *got;

    snprintf(name, sizeof(name), "%s.txt", machines[_i]);
    read_file(fixture(name), want);
    snprintf(name, sizeof(name), "%s.xml", machines[_i]);
    got = export_file(fixture(name), COLL_TOPO_TEXT);
    ck_assert_str_eq(got, want);
    free(got);
}
END_TEST

START_TEST(exported_xml_describes_the_same_machine)
{
    char path[] = "test_topo_XXXXXX", name[64], *xml, *before, *after;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    snprintf(name, sizeof(name), "%s.xml", machines[_i]);
    before = export_file(fixture(name), COLL_TOPO_TEXT);
    xml = export_file(fixture(name), COLL_TOPO_XML);
    write_file(path, xml, strlen(xml));
    after = export_file(path, COLL_TOPO_TEXT);
    unlink(path);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    free(xml);
}
END_TEST

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;

    while ((text = strstr(text, word))) {
        text += strlen(word);
        n++;
    }
    return n;
}

START_TEST(dot_is_a_tree_with_one_node_a_part)
{
    char *dot = export_file(fixture("two_sockets.xml"), COLL_TOPO_DOT);

    /* machine, 2 packages, numa and L3 each, 8 L2, 8 cores, 5 devices */
    ck_assert_uint_eq(count_of(dot, "[label="), 1 + 2 + 2 + 2 + 8 + 8 + 5);
    ck_assert_uint_eq(count_of(dot, " -- "), 27);
    ck_assert(!strncmp(dot, "graph machine {\n", 16));
    ck_assert_str_eq(dot + strlen(dot) - 2, "}\n");
    free(dot);
}
END_TEST

START_TEST(dot_joins_gpus_by_nvlink_once)
{
    char *dot = export_file(fixture("gpus_nvswitch.xml"), COLL_TOPO_DOT);

    ck_assert_uint_eq(count_of(dot, "nvlink 450 GB/s\"];"), 8 * 7 / 2);
    ck_assert_uint_eq(count_of(dot, "[label=\"switch 0000:"), 4);
    free(dot);
    dot = export_file(fixture("gpus_pcie.xml"), COLL_TOPO_DOT);
    ck_assert_uint_eq(count_of(dot, "nvlink"), 0);
    free(dot);
}
END_TEST

static void write_as(const char *path, struct coll__topo *topo)
{
    char *xml = NULL;

    ck_assert(!coll__topo_format(topo, COLL_TOPO_XML, &xml));
    write_file(path, xml, strlen(xml));
    free(xml);
}

/* Names and numbers as a driver has them, on a machine of which hwloc knows the PCI
 * devices alone. */
START_TEST(what_a_driver_says_is_in_the_xml_too)
{
    static const struct coll__gpu_seen gpus[] = {
        {"0000:02:00.0", "H1", {1, 2}, 400e9},
        {"0000:82:00.0", "H2", {3}, 300e9}};
    static const unsigned char nvlink[] = {0, 1, 1, 0};
    struct coll__topo *topo;
    char path[] = "test_topo_XXXXXX", *text;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    setenv("COLL_TOPO_FILE", fixture("two_sockets.xml"), 1);
    ck_assert(!coll__topo_create(&topo));
    ck_assert(!coll__topo_add_gpus(topo, gpus, 2, nvlink));
    ck_assert(!coll__topo_format(topo, COLL_TOPO_TEXT, &text));
    ck_assert_ptr_nonnull(strstr(
        text, "gpu 0000:02:00.0 H1, GPU-01020000-0000-0000-0000-000000000000, "
              "nvlink 300 GB/s to 1 GPU, near mlx5_0\n"));
    free(text);
    write_as(path, topo);
    coll__topo_destroy(topo);
    text = export_file(path, COLL_TOPO_TEXT);
    ck_assert_ptr_nonnull(strstr(
        text, "gpu 0000:82:00.0, GPU-03000000-0000-0000-0000-000000000000, "
              "nvlink 300 GB/s to 1 GPU, near mlx5_1\n"));
    free(text);
    unlink(path);
}
END_TEST

START_TEST(this_machine_has_at_least_a_core)
{
    char *text = NULL;

    unsetenv("COLL_TOPO_FILE");
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, &text), COLL_OK);
    ck_assert(!strncmp(text, "machine", 7));
    ck_assert_ptr_nonnull(strstr(text, "core "));
    free(text);
}
END_TEST

/* ---- GPUs ---------------------------------------------------------------- */

/* What lspci -nn says of them, and whether one computes there. */
static const struct {
    struct coll__pci pci;
    int computes;
    const char *what;
} devices[] = {
    {{0x0300, 0x1a03, 0x2000, 0, 3, 0}, 0, "ASPEED, on board"},
    {{0x0300, 0x102b, 0x0538, 0, 4, 0}, 0, "Matrox, on board"},
    {{0x0302, 0x102b, 0x0538, 0, 4, 0}, 0, "a 3D controller of Matrox"},
    {{0x0300, 0x1002, 0x515e, 0, 1, 0}, 0, "ATI ES1000, on board"},
    {{0x0300, 0x1234, 0x1111, 0, 2, 0}, 0, "QEMU's screen"},
    {{0x0380, 0x1af4, 0x1050, 0, 4, 0}, 0, "virtio's screen"},
    {{0x0300, 0x15ad, 0x0405, 0, 15, 0}, 0, "VMware's screen"},
    {{0x0300, 0x8086, 0x4680, 0, 0, 2}, 0, "Intel, in the processor"},
    {{0x0380, 0x8086, 0x4c8a, 0, 0, 2}, 0, "the same without a screen"},
    {{0x0302, 0x10de, 0x0091, 0, 1, 0}, 0, "GeForce 7800"},
    {{0x0200, 0x10de, 0x2330, 0, 1, 0}, 0, "NVIDIA, but no display"},
    {{0x1200, 0x8086, 0x7d1d, 0, 0, 11}, 0, "Intel, an NPU"},
    {{0x0302, 0x10de, 0x2330, 0, 2, 0}, 1, "H100"},
    {{0x0300, 0x10de, 0x2684, 0, 1, 0}, 1, "RTX 4090"},
    {{0x0380, 0x1002, 0x740f, 0, 1, 0}, 1, "Instinct MI210"},
    {{0x1200, 0x1002, 0x74a1, 0, 1, 0}, 1, "Instinct MI300X"},
    {{0x0300, 0x1002, 0x744c, 0, 3, 0}, 1, "Radeon 7900"},
    {{0x0380, 0x8086, 0x0bd5, 0, 41, 0}, 1, "Data Center GPU Max"},
};

START_TEST(gpus_are_what_one_computes_on)
{
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        ck_assert_msg(coll__pci_computes(&devices[i].pci) ==
                          devices[i].computes,
                      "%s", devices[i].what);
}
END_TEST

START_TEST(a_screen_of_the_board_is_no_gpu)
{
    char *text = export_file(fixture("vga192.xml"), COLL_TOPO_TEXT);

    ck_assert_uint_eq(count_of(text, "core "), 192);
    ck_assert_uint_eq(count_of(text, "gpu "), 0);
    free(text);
}
END_TEST

/* Of an unknown maker, but OpenCL runs on it. */
START_TEST(what_a_driver_computes_on_is_a_gpu)
{
    static const char device[] =
        "<object type=\"OSDev\" gp_index=\"9\" name=\"opencl0d0\" "
        "osdev_type=\"5\"/>";
    static char xml[2 * MAX_TEXT];
    char path[] = "test_topo_XXXXXX", *text, *at;
    size_t len = read_file(fixture("vga192.xml"), xml);
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    at = strstr(xml, "0302 [102b:");
    ck_assert_ptr_nonnull(at);
    at = strchr(at, '>') + 1;
    memmove(at + sizeof(device) - 1, at, (size_t)(xml + len - at));
    memcpy(at, device, sizeof(device) - 1);
    write_file(path, xml, len + sizeof(device) - 1);
    text = export_file(path, COLL_TOPO_TEXT);
    unlink(path);
    ck_assert_uint_eq(count_of(text, "gpu "), 1);
    ck_assert_ptr_nonnull(strstr(text, "gpu 0000:04:00.0"));
    free(text);
}
END_TEST

/* ---- files that are no machine ----------------------------------------- */

static void check_refused(const char *path, const char *why)
{
    char *text = (char *)"untouched";

    setenv("COLL_TOPO_FILE", path, 1);
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, &text), COLL_ERR_INVALID);
    ck_assert_str_eq(text, "untouched");
    ck_assert_ptr_nonnull(strstr(coll_last_error(), path));
    ck_assert_ptr_nonnull(strstr(coll_last_error(), why));
}

START_TEST(file_that_is_missing_or_foreign_is_named)
{
    check_refused("/nonexistent/machine.xml", "does not exist");
    check_refused("/", "is no hwloc XML file");
    check_refused("/dev/null", "is no hwloc XML file");
    check_refused(fixture("two_sockets.txt"), "is no hwloc XML file");
}
END_TEST

/* hwloc's parser gets every prefix of a file in steps of 97 bytes. */
START_TEST(truncated_file_is_refused)
{
    char path[] = "test_topo_XXXXXX", xml[MAX_TEXT];
    size_t len = read_file(fixture("two_sockets.xml"), xml);
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    for (size_t cut = 0; cut < len - 20; cut += 97) {
        write_file(path, xml, cut);
        check_refused(path, "is no hwloc XML file");
    }
    unlink(path);
}
END_TEST

/* Any byte of the file turned into any other: refused or read, and what comes
 * out is clean text. */
START_TEST(damaged_file_never_harms)
{
    static const char *const files[] = {"two_sockets.xml", "gpus_nvswitch.xml"};
    char path[] = "test_topo_XXXXXX", xml[MAX_TEXT], *text;
    size_t len = read_file(fixture(files[_i]), xml);
    int fd = mkstemp(path);
    uint32_t state = 1;

    ck_assert_int_ge(fd, 0);
    close(fd);
    setenv("COLL_TOPO_FILE", path, 1);
    for (int i = 0; i < 300; i++) {
        size_t at = (state = state * 1664525 + 1013904223) % len;
        char kept = xml[at];

        xml[at] = (char)(state >> 24);
        write_file(path, xml, len);
        if (!coll_topo_export(COLL_TOPO_DOT, &text)) {
            for (const char *c = text; *c; c++)
                ck_assert(*c == '\n' || (unsigned char)*c >= ' ');
            free(text);
        }
        xml[at] = kept;
    }
    unlink(path);
}
END_TEST

static void ignore(int number) { (void)number; }

/* The child that tries the file takes some milliseconds. */
START_TEST(signals_meanwhile_are_no_fault_of_the_file)
{
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = ignore};

    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < 5; i++)
        free(export_file(fixture("two_sockets.xml"), COLL_TOPO_TEXT));
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* all are reaped */
}
END_TEST

START_TEST(unknown_format_and_missing_place_are_refused)
{
    char *text = NULL;

    unsetenv("COLL_TOPO_FILE");
    ck_assert_int_eq(coll_topo_export((enum coll_topo_format)9, &text),
                     COLL_ERR_INVALID);
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, NULL), COLL_ERR_INVALID);
    ck_assert_ptr_null(text);
}
END_TEST

/* ---- this process ------------------------------------------------------ */

START_TEST(processes_of_one_host_agree_on_its_id)
{
    struct coll__peer parent, child;
    int pipes[2], status;
    pid_t pid;

    ck_assert_int_eq(pipe(pipes), 0);
    coll__topo_self(&parent);
    pid = fork();
    if (pid == 0) {
        coll__topo_self(&child);
        status = write(pipes[1], &child, sizeof(child)) != sizeof(child);
        _exit(status);
    }
    ck_assert_int_eq((int)read(pipes[0], &child, sizeof(child)),
                     (int)sizeof(child));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(parent.host_id, child.host_id);
    ck_assert_uint_eq(parent.pid_ns, child.pid_ns);
    ck_assert_int_eq(parent.pid, getpid());
    ck_assert_int_eq(child.pid, pid);
    ck_assert(strchr(parent.host_id, '/') && parent.host_id[0] != '/');
}
END_TEST

/* Processors 0 and 1 are of two packages there, 0 and 2 of one core. */
START_TEST(a_file_says_where_a_process_is)
{
    struct coll__peer here, there;
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(1, &one);
    if (sched_setaffinity(0, sizeof(one), &one))
        return; /* no second one here */
    setenv("COLL_TOPO_FILE", fixture("two_sockets.xml"), 1);
    ck_assert_int_eq(coll__topo_self(&there), COLL_OK);
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(coll__topo_self(&here), COLL_OK);
    for (int kind = 0; kind < COLL__WITHIN; kind++) {
        ck_assert_int_eq(here.within[kind], 0);
        ck_assert_int_eq(there.within[kind], 1);
    }
    CPU_SET(1, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(coll__topo_self(&here), COLL_OK);
    for (int kind = 0; kind < COLL__WITHIN; kind++)
        ck_assert_int_eq(here.within[kind], -1);
    setenv("COLL_TOPO_FILE", "/nonexistent", 1);
    ck_assert_int_eq(coll__topo_self(&here), COLL_ERR_INVALID);
    unsetenv("COLL_TOPO_FILE");
}
END_TEST

/* How often the file has been opened since the last time. */
static int n_opened(int watch)
{
    struct inotify_event event;
    int n = 0;

    while (read(watch, &event, sizeof(event)) == (ssize_t)sizeof(event))
        n++;
    return n;
}

static void copy_file(const char *name, const char *to)
{
    char text[MAX_TEXT];
    size_t len = read_file(fixture(name), text);

    write_file(to, text, len);
}

/* A communicator asks both. */
static void ask_file(int32_t package, int *n)
{
    static int watch = -1;
    struct coll__inside inside;
    struct coll__peer self;

    if (watch < 0) {
        watch = inotify_init1(IN_NONBLOCK);
        ck_assert_int_ge(watch, 0);
    }
    if (inotify_add_watch(watch, getenv("COLL_TOPO_FILE"), IN_OPEN) < 0)
        ck_abort_msg("no watch");
    n_opened(watch);
    ck_assert_int_eq(coll__topo_self(&self), COLL_OK);
    coll__inside_load(&inside);
    *n = n_opened(watch);
    ck_assert_int_eq(self.within[WITHIN_PACKAGE], package);
}

/* Processor 1 is in another package in one of the two, and not in the other. */
START_TEST(a_file_is_read_again_when_it_has_changed)
{
    char path[] = "test_topo_XXXXXX";
    int fd = mkstemp(path), n;
    cpu_set_t one;

    ck_assert_int_ge(fd, 0);
    close(fd);
    CPU_ZERO(&one);
    CPU_SET(1, &one);
    if (sched_setaffinity(0, sizeof(one), &one)) {
        unlink(path);
        return; /* no second one here */
    }
    copy_file("two_sockets.xml", path);
    setenv("COLL_TOPO_FILE", path, 1);
    ask_file(1, &n);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < 10; i++) {
        ask_file(1, &n);
        ck_assert_int_eq(n, 0);
    }
    copy_file("four_numa.xml", path);
    ask_file(0, &n);
    ck_assert_int_gt(n, 0);
    setenv("COLL_TOPO_FILE", fixture("two_sockets.xml"), 1);
    ask_file(1, &n);
    ck_assert_int_gt(n, 0);
    unsetenv("COLL_TOPO_FILE");
    unlink(path);
}
END_TEST

START_TEST(cores_are_those_that_affinity_allows)
{
    struct coll__peer self;
    cpu_set_t all, one;
    uint32_t cpuset;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    coll__topo_self(&self);
    ck_assert_int_eq(self.n_cores, CPU_COUNT(&all));
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    cpuset = self.cpuset;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    coll__topo_self(&self);
    ck_assert_int_eq(self.n_cores, 1);
    ck_assert_int_eq(self.cpuset == cpuset, CPU_COUNT(&all) == 1);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMALL_STACK (256 << 10) /* their frames are larger */
#elif defined(__has_feature)    /* clang */
#define SMALL_STACK (256 << 10)
#else
#define SMALL_STACK (32 << 10)
#endif

static void *ask_for_all(void *text)
{
    return coll_topo_export(COLL_TOPO_TEXT, text) ? text : NULL;
}

/* A thread of a program that has thousands of them. */
START_TEST(a_small_stack_is_enough)
{
    char *text = NULL;
    void *is_wrong;
    pthread_attr_t attr;
    pthread_t thread;

    ck_assert_int_eq(pthread_attr_init(&attr), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, ask_for_all, &text), 0);
    ck_assert_int_eq(pthread_join(thread, &is_wrong), 0);
    ck_assert_ptr_null(is_wrong);
    ck_assert_ptr_nonnull(strstr(text, "machine"));
    free(text);
    pthread_attr_destroy(&attr);
}
END_TEST

static TCase *file_cases(void)
{
    TCase *cases = tcase_create("files");

    tcase_add_loop_test(cases, recorded_machine_prints_as_the_tree_beside_it, 0,
                        (int)ARRAY_LEN(machines));
    tcase_add_loop_test(cases, exported_xml_describes_the_same_machine, 0,
                        (int)ARRAY_LEN(machines));
    tcase_add_test(cases, dot_is_a_tree_with_one_node_a_part);
    tcase_add_test(cases, dot_joins_gpus_by_nvlink_once);
    tcase_add_test(cases, what_a_driver_says_is_in_the_xml_too);
    tcase_add_test(cases, this_machine_has_at_least_a_core);
    tcase_add_test(cases, gpus_are_what_one_computes_on);
    tcase_add_test(cases, a_screen_of_the_board_is_no_gpu);
    tcase_add_test(cases, what_a_driver_computes_on_is_a_gpu);
    tcase_add_test(cases, file_that_is_missing_or_foreign_is_named);
    tcase_add_test(cases, truncated_file_is_refused);
    tcase_add_loop_test(cases, damaged_file_never_harms, 0, 2);
    tcase_add_test(cases, signals_meanwhile_are_no_fault_of_the_file);
    tcase_add_test(cases, unknown_format_and_missing_place_are_refused);
    tcase_set_timeout(cases, 90);
    return cases;
}

static TCase *process_cases(void)
{
    TCase *cases = tcase_create("processes");

    tcase_add_test(cases, processes_of_one_host_agree_on_its_id);
    tcase_add_test(cases, cores_are_those_that_affinity_allows);
    tcase_add_test(cases, a_file_says_where_a_process_is);
    tcase_add_test(cases, a_file_is_read_again_when_it_has_changed);
    tcase_add_test(cases, a_small_stack_is_enough);
    return cases;
}

int main(void)
{
    Suite *suite = suite_create("topo");

    suite_add_tcase(suite, file_cases());
    suite_add_tcase(suite, process_cases());
    return suite_run(suite);
}
