# SPDX-License-Identifier: BSD-3-Clause
# installing.sh - read by scripts, in the build folder: `make install` links libraries anew
# and moves them away for a moment, so it and the scripts that use them wait for each other.
# The lock is a file that is there in any case.

# no_install: nobody installs from now on; for children that may outlive the script, 9<&-
no_install() { exec 9< config.status && flock -s 9; }

# install_in FOLDER: install there, as DESTDIR.
install_in() {
    flock -w $((600 * patience)) config.status env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
        make -s install DESTDIR="$1"
}
