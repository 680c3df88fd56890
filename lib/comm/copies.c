/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.c - see copies.h.
 *
 * Copies of the library cannot see each other's symbols, but the loader knows all
 * objects of the process.  So each copy has an ELF note, which says how far that copy's
 * counter of communicators is behind the object's ELF header.  This distance is valid
 * wherever the object is loaded, and wherever patchelf has moved the note.  The note's
 * kind stays the same as long as the note and the counter keep their meaning.
 */
#include "lib/comm/copies.h"
#include "lib/util/util.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define NOTE_KIND 2
#define NOTE_NAME "libcoll"

/* This copy's counter: communicators that are not being destroyed. */
atomic_int coll__copy_word __attribute__((used, visibility("hidden")));

#define KIND STRING_OF(NOTE_KIND)
__asm__(".hidden __ehdr_start\n" /* the linker's name of the ELF header */
        ".pushsection .note.libcoll,\"a\",%note\n"
        ".balign 4\n"
        ".long 8, 8, " KIND "\n" /* bytes of the name, and of the distances */
        ".asciz \"" NOTE_NAME "\"\n"
        "0: .long coll__copy_word - 0b\n"
        ".long __ehdr_start - 0b\n"
        ".popsection\n");

/* The distances of the counter and of the ELF header from where the linker had put the
 * note. */
struct note {
    ElfW(Nhdr) head;
    char name[sizeof(NOTE_NAME)];
    int32_t word, header;
};

void coll__copies_tell(int n_comms) { atomic_store(&coll__copy_word, n_comms); }

/* Return the counter that the note at `at` points to, or NULL if the note is not the
 * library's.  header: the ELF header of the note's object. */
static const atomic_int *word_of(const unsigned char *at, size_t left,
                                 const unsigned char *header)
{
    const struct note *note = (const struct note *)at;

    if (left < sizeof(*note) || note->head.n_type != NOTE_KIND ||
        note->head.n_namesz != sizeof(note->name) ||
        note->head.n_descsz != sizeof(note->word) + sizeof(note->header) ||
        memcmp(note->name, NOTE_NAME, sizeof(note->name)))
        return NULL;
    return (const atomic_int *)(header + note->word - note->header);
}

static size_t note_len(const unsigned char *at, size_t align)
{
    const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)at;

    return round_up(round_up(sizeof(*head) + head->n_namesz, align) +
                        head->n_descsz,
                    align);
}

/* Does one of these notes belong to another copy that has communicators? */
static int notes_tell(const unsigned char *at, size_t left, size_t align,
                      const unsigned char *header)
{
    while (left >= sizeof(ElfW(Nhdr))) {
        const atomic_int *word = word_of(at, left, header);
        size_t len = note_len(at, align);

        if (word && word != &coll__copy_word && atomic_load(word) > 0)
            return 1;
        if (len > left)
            break;
        at += len;
        left -= len;
    }
    return 0;
}

/* Return the ELF header of a loaded object: the beginning of its file. */
static const unsigned char *header_of(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD &&
            !object->dlpi_phdr[i].p_offset)
            return (const unsigned char *)object->dlpi_addr +
                   object->dlpi_phdr[i].p_vaddr;
    return NULL;
}

static int look_at(struct dl_phdr_info *object, size_t size, void *arg)
{
    const unsigned char *header = header_of(object);

    (void)size;
    (void)arg;
    for (int i = 0; header && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];

        if (part->p_type == PT_NOTE &&
            notes_tell((const unsigned char *)object->dlpi_addr + part->p_vaddr,
                       part->p_memsz, part->p_align == 8 ? 8 : 4, header))
            return 1;
    }
    return 0;
}

static atomic_int is_child;

void coll__copies_forked(void)
{
    atomic_store(&is_child, 1);
    coll__copies_tell(0);
}

int coll__copies_have(void)
{
    return !atomic_load(&is_child) && dl_iterate_phdr(look_at, NULL);
}
