#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts, and each launcher that is here: tests/net/run.
exec "${srcdir:-.}/tests/net/run"
