# SPDX-License-Identifier: BSD-3-Clause
scripts += %D%/check_layers.sh %D%/kinds.sh
