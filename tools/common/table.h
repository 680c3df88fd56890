/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - results of a program, one row after the other: as a table to read, as
 * JSON or as CSV.
 *
 * A program fills in a row, a cell at a time, and prints it.  A row with the same
 * cells, whatever their values, also gives the column titles of the table and of the
 * CSV.
 */
#ifndef COLL_TOOLS_COMMON_TABLE_H
#define COLL_TOOLS_COMMON_TABLE_H

#include <stdio.h>

#define TABLE_CELLS 32 /* the most that a row has */

enum table_form {
    TABLE_TEXT, /* a table, whose titles are a remark: "#" begins their line */
    TABLE_JSON, /* an object a row, without titles */
    TABLE_CSV,
    TABLE_PLAIN, /* a table without any "#" */
    TABLE_REMARK /* a table, each line of which is a remark */
};

enum cell_kind { CELL_TEXT, CELL_COUNT, CELL_REAL, CELL_SHARE };

struct table_cell {
    /* the name in JSON and CSV: "lat_us.min" is a member of an object "lat_us" in JSON,
     * and "min_us" in CSV.  NULL: the cell is left out there */
    const char *key;
    const char *head; /* of the table; NULL: not in the table */
    int width;        /* there; below 0: the cell is left-aligned */
    enum cell_kind kind;
    int digits; /* of a real or a percentage, behind the point */
    const char *text;
    unsigned long long count;
    double real;
};

struct table_row {
    struct table_cell cells[TABLE_CELLS];
    int n;
};

/* Add a cell; a real number has `digits` digits after the point.  A share of 0 to 1 is
 * shown in percent, with a sign; it stands in the table only.
 *
 * Ownership: texts are borrowed until the row is printed.
 */
void row_text(struct table_row *row, const char *key, const char *head,
              int width, const char *value);
void row_count(struct table_row *row, const char *key, const char *head,
               int width, unsigned long long value);
void row_real(struct table_row *row, const char *key, const char *head,
              int width, int digits, double value);
void row_share(struct table_row *row, const char *head, int width, int digits,
               double value);

/* Print the heads: nothing for JSON. */
void table_print_heads(FILE *to, const struct table_row *row,
                       enum table_form form);

/* Print a row, and pass it on at once. */
void table_print_row(FILE *to, const struct table_row *row,
                     enum table_form form);

#endif
