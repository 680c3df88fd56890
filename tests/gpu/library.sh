#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# library.sh BUNDLE FOLDER: build libcoll there, with its benchmarks, trainer and tests/gpu/ranks,
# from what bundle.sh has made and a machine's gcc, make and CUDA toolkit.  FOLDER/run
# COMMAND... runs what was built with the libraries of the bundle.
bundle=$(realpath "${1:?a bundle}") || exit 1
mkdir -p "${2:?a folder}" && cd "$2" || exit 1
cuda=${CUDA:-/usr/local/cuda}
tar -xf "$bundle" && mkdir -p root sources build || exit 1
for deb in debs/*.deb; do
    if command -v dpkg-deb > /dev/null; then
        dpkg-deb -x "$deb" root
    else # a deb is an archive of archives
        (cd root && ar p "../$deb" data.tar.xz | tar -xJ)
    fi || exit 1
done
tar -C sources --strip-components 1 -xzf sources.tar.gz || exit 1

root=$PWD/root
libs=$root/usr/lib/x86_64-linux-gnu
# Absolute links lead out of the root to where a bare machine has nothing.
find "$libs" -type l -lname '/*' | while read -r link; do
    ln -sfn "$root$(readlink "$link")" "$link"
done
cat > run << END
#!/bin/sh
LD_LIBRARY_PATH=$libs:$root/lib/x86_64-linux-gnu:$PWD/build/.libs\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "\$@"
END
chmod 755 run
cat > pkg-config << END
#!/bin/sh
PKG_CONFIG_LIBDIR=$libs/pkgconfig:$root/usr/share/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$root
LD_LIBRARY_PATH=$libs
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
exec $root/usr/bin/pkgconf "\$@"
END
chmod 755 pkg-config
cd build || exit 1
../run ../sources/configure PKG_CONFIG="$PWD/../pkg-config" --with-cuda="$cuda" \
    --without-pmix --without-simgrid CPPFLAGS="-I$root/usr/include" \
    LDFLAGS="-L$libs -Wl,-rpath-link,$libs -Wl,-rpath-link,$root/lib/x86_64-linux-gnu" &&
    ../run make -s -j"$(nproc)" && ../run make -s -j"$(nproc)" tests/gpu/ranks
