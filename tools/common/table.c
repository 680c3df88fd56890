/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - rows as a table, as JSON by jansson, or as CSV. */
#include "tools/common/table.h"

#include <jansson.h>

#include <assert.h>
#include <math.h>
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

void row_share(struct table_row *row, const char *head, int width, int digits,
               double value)
{
    struct table_cell *cell = add(row, NULL, head, width);

    cell->kind = CELL_SHARE;
    cell->digits = digits;
    cell->real = value * 100;
}

/* ---- as a table ----------------------------------------------------------- */

static void print_cell(FILE *to, const struct table_cell *cell, int width)
{
    switch (cell->kind) {
    case CELL_TEXT:
        fprintf(to, "%*s", width, cell->text);
        break;
    case CELL_COUNT:
        fprintf(to, "%*llu", width, cell->count);
        break;
    case CELL_REAL:
        fprintf(to, "%*.*f", width, cell->digits, cell->real);
        break;
    case CELL_SHARE:
        fprintf(to, "%*.*f%%", width - 1, cell->digits, cell->real);
        break;
    }
}

/* A left-aligned cell has a wider gap before it. */
static void print_gap(FILE *to, const struct table_cell *cell, int is_first)
{
    fputs(is_first ? "" : cell->width < 0 ? "  " : " ", to);
}

/* Return what the lines of a table begin with. */
static const char *margin(enum table_form form, int is_head)
{
    if (form == TABLE_REMARK)
        return "# ";
    if (form == TABLE_PLAIN)
        return "";
    return is_head ? "#" : " ";
}

static void print_text(FILE *to, const struct table_row *row,
                       enum table_form form, int is_head)
{
    int is_first = 1;

    fputs(margin(form, is_head), to);
    for (int i = 0; i < row->n; i++) {
        const struct table_cell *cell = &row->cells[i];

        if (!cell->head)
            continue;
        print_gap(to, cell, is_first);
        if (is_head)
            fprintf(to, "%*s", cell->width, cell->head);
        else
            print_cell(to, cell, cell->width);
        is_first = 0;
    }
    fputc('\n', to);
}

/* ---- as CSV --------------------------------------------------------------- */

/* "lat_us.min" is "min_us". */
static void print_key(FILE *to, const char *key)
{
    const char *point = strchr(key, '.'), *unit = strchr(key, '_');

    if (!point)
        fputs(key, to);
    else
        fprintf(to, "%s%.*s", point + 1, unit ? (int)(point - unit) : 0,
                unit ? unit : "");
}

static void print_csv(FILE *to, const struct table_row *row, int is_head)
{
    int is_first = 1;

    for (int i = 0; i < row->n; i++) {
        const struct table_cell *cell = &row->cells[i];

        if (!cell->key)
            continue;
        fputs(is_first ? "" : ",", to);
        if (is_head)
            print_key(to, cell->key);
        else
            print_cell(to, cell, 0);
        is_first = 0;
    }
    fputc('\n', to);
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
    case CELL_SHARE:
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

static void print_json(FILE *to, const struct table_row *row)
{
    json_t *all = json_object();

    for (int i = 0; i < row->n; i++)
        if (row->cells[i].key)
            put(all, row->cells[i].key, json_of(&row->cells[i]));
    json_dumpf(all, to, JSON_COMPACT | JSON_REAL_PRECISION(12));
    fputc('\n', to);
    json_decref(all);
}

/* ---- all ------------------------------------------------------------------ */

void table_print_heads(FILE *to, const struct table_row *row,
                       enum table_form form)
{
    if (form == TABLE_CSV)
        print_csv(to, row, 1);
    else if (form != TABLE_JSON)
        print_text(to, row, form, 1);
    fflush(to);
}

void table_print_row(FILE *to, const struct table_row *row,
                     enum table_form form)
{
    if (form == TABLE_CSV)
        print_csv(to, row, 0);
    else if (form == TABLE_JSON)
        print_json(to, row);
    else
        print_text(to, row, form, 0);
    fflush(to);
}
