/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - rows as a table, as JSON by jansson, or as CSV. */
#include "tools/common/table.h"

#include <jansson.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_KEY 48

static struct table_cell *add(struct table_row *row, const char *key,
                              const char *head, int width)
{
    struct table_cell *cell = &row->cells[row->n++];

    assert(row->n <= TABLE_CELLS);
    *cell = (struct table_cell){.key = key, .head = head, .width = width};
    return cell;
}

void row_text(struct table_row *row, const char *key, const char *head,
              int width, const char *value)
{
    struct table_cell *cell = add(row, key, head, width);

    cell->kind = CELL_TEXT;
    cell->text = value;
}

void row_count(struct table_row *row, const char *key, const char *head,
               int width, unsigned long long value)
{
    struct table_cell *cell = add(row, key, head, width);

    cell->kind = CELL_COUNT;
    cell->count = value;
}

void row_real(struct table_row *row, const char *key, const char *head,
              int width, int digits, double value)
{
    struct table_cell *cell = add(row, key, head, width);

    cell->kind = CELL_REAL;
    cell->digits = digits;
    cell->real = value;
}

/* ---- as a table ----------------------------------------------------------- */

static void print_cell(const struct table_cell *cell, int width)
{
    switch (cell->kind) {
    case CELL_TEXT:
        printf("%*s", width, cell->text);
        break;
    case CELL_COUNT:
        printf("%*llu", width, cell->count);
        break;
    case CELL_REAL:
        printf("%*.*f", width, cell->digits, cell->real);
        break;
    }
}

/* A left-aligned cell has a wider gap before it. */
static void print_gap(const struct table_cell *cell, int is_first)
{
    fputs(is_first ? "" : cell->width < 0 ? "  " : " ", stdout);
}

static void print_text(const struct table_row *row, int is_head)
{
    int is_first = 1;

    putchar(is_head ? '#' : ' ');
    for (int i = 0; i < row->n; i++) {
        const struct table_cell *cell = &row->cells[i];

        if (!cell->head)
            continue;
        print_gap(cell, is_first);
        if (is_head)
            printf("%*s", cell->width, cell->head);
        else
            print_cell(cell, cell->width);
        is_first = 0;
    }
    putchar('\n');
}

/* ---- as CSV --------------------------------------------------------------- */

/* "lat_us.min" is "min_us". */
static void print_key(const char *key)
{
    const char *point = strchr(key, '.'), *unit = strchr(key, '_');

    if (!point)
        fputs(key, stdout);
    else
        printf("%s%.*s", point + 1, unit ? (int)(point - unit) : 0,
               unit ? unit : "");
}

static void print_csv(const struct table_row *row, int is_head)
{
    int is_first = 1;

    for (int i = 0; i < row->n; i++) {
        const struct table_cell *cell = &row->cells[i];

        if (!cell->key)
            continue;
        fputs(is_first ? "" : ",", stdout);
        if (is_head)
            print_key(cell->key);
        else
            print_cell(cell, 0);
        is_first = 0;
    }
    putchar('\n');
}

/* ---- as JSON -------------------------------------------------------------- */

static json_t *json_of(const struct table_cell *cell)
{
    double unit = pow(10, cell->digits);

    switch (cell->kind) {
    case CELL_TEXT:
        return json_string(cell->text);
    case CELL_COUNT:
        return json_integer((json_int_t)cell->count);
    case CELL_REAL:
        break;
    }
    return json_real(round(cell->real * unit) / unit);
}

/* Put a value at "key", or at "object.key". */
static void put(json_t *all, const char *key, json_t *value)
{
    const char *point = strchr(key, '.');
    char name[MOST_KEY];
    json_t *object;

    if (!point) {
        json_object_set_new(all, key, value);
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(point - key), key);
    object = json_object_get(all, name);
    if (!object) {
        object = json_object();
        json_object_set_new(all, name, object);
    }
    json_object_set_new(object, point + 1, value);
}

static void print_json(const struct table_row *row)
{
    json_t *all = json_object();

    for (int i = 0; i < row->n; i++)
        if (row->cells[i].key)
            put(all, row->cells[i].key, json_of(&row->cells[i]));
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(all);
}

/* ---- all ------------------------------------------------------------------ */

void table_print_heads(const struct table_row *row, enum table_form form)
{
    if (form == TABLE_TEXT)
        print_text(row, 1);
    else if (form == TABLE_CSV)
        print_csv(row, 1);
    fflush(stdout);
}

void table_print_row(const struct table_row *row, enum table_form form)
{
    if (form == TABLE_TEXT)
        print_text(row, 0);
    else if (form == TABLE_CSV)
        print_csv(row, 0);
    else
        print_json(row);
    fflush(stdout);
}
