# SPDX-License-Identifier: BSD-3-Clause
scripts += %D%/check_layers.sh %D%/check_sizes.sh %D%/kinds.sh
