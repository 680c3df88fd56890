#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make a source distribution and a wheel of the package libcoll; `make wheel` calls this.

The source distribution has the package alone, which loads an installed libcoll.so. The wheel
has also the package libcoll_bundle: libcoll and the libraries that it needs in lib, the
modules of UCX in lib/ucx, and the programs in bin. They find each other by RUNPATHs from
$ORIGIN. LD_LIBRARY_PATH precedes these, so an operator can use another UCX.

Libraries keep their names, because plugins (those of UCX, and of an installed hwloc) find
their library by its name.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The libraries that a wheel leaves to the platform. glibc and the compiler's are those that
# the tag manylinux promises. libibverbs, librdmacm and libmlx5 drive RDMA cards: a libibverbs
# loads the drivers of its own version only, those of the host fit its kernel and cards, and
# where there are none libcoll and UCX do without RDMA. CUDA's driver and libpmix are not linked
# at all: libcoll loads those of the host and of the launcher.
PLATFORM = re.compile(
    r"(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|ibverbs|rdmacm|mlx5))\.so\.\d+"
)
# coll_train needs oneDNN, of 40 MB; coll_compare needs the libraries that it measures
LEFT_OUT = ("coll_train", "coll_compare")
COMMON_LICENSES = Path("/usr/share/common-licenses")


def said(*command: str | Path, cwd: Path | None = None, **variables: str | Path) -> str:
    """Run a command with these variables and return what it says; end here if it fails."""
    if not shutil.which(command[0]):
        sys.exit(f"no {command[0]} here; install it (Debian: apt-get install {command[0]})")
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in variables.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{command[0]} has failed")
    return done.stdout


def libraries_of(files: list[Path], folder: Path) -> dict[str, Path]:
    """Find the libraries that files need, and what these need, but those of the platform."""
    found: dict[str, Path] = {}
    todo = list(files)
    while todo:
        file = todo.pop()
        places = dict(re.findall(r"(\S+) => (/\S+)", said("ldd", file, LD_LIBRARY_PATH=folder)))
        for name in said("patchelf", "--print-needed", file).split():
            if name in found or PLATFORM.fullmatch(name):
                continue
            if name not in places:
                sys.exit(f"{file} needs {name}, which is not here")
            found[name] = Path(places[name])
            todo.append(found[name])
    return found


def place(file: Path, at: Path, rpath: str) -> None:
    """Copy a program or library and let it find its libraries by rpath."""
    at.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, at)
    at.chmod(0o755)
    said("strip", at)
    said("patchelf", "--set-rpath", rpath, at)


def fill_bundle(bundle: Path, installed: argparse.Namespace) -> list[Path]:
    """Fill in libcoll_bundle; return the files of other packages that it has."""
    if b"/libucp.so.0" in (installed.lib / "libcoll.so.0").read_bytes():
        sys.exit("libcoll was configured --with-ucx=DIR, and looks for UCX there only")
    libucp = installed.ucx / "libucp.so.0"
    modules = sorted((installed.ucx / "ucx").glob("lib*.so.0"))
    programs = sorted(p for p in installed.bin.iterdir() if p.name not in LEFT_OUT)
    libraries = libraries_of([libucp, *modules, *programs], installed.lib)
    libraries[libucp.name] = libucp
    for module in modules:
        libraries.pop(module.name, None)  # another module needs it
    for program in programs:
        place(program, bundle / "bin" / program.name, "$ORIGIN/../lib")
    for name, file in libraries.items():
        place(file, bundle / "lib" / name, "$ORIGIN")
    for module in modules:
        place(module, bundle / "lib/ucx" / module.name, "$ORIGIN:$ORIGIN/..")
    shutil.copy(Path(__file__).with_name("programs.py"), bundle / "__init__.py")
    return [*modules, *(f for f in libraries.values() if f.parent != installed.lib)]


def copy_licenses(files: list[Path], folder: Path) -> None:
    """Copy the licences of the Debian packages that files belong to, whole."""
    folder.mkdir(exist_ok=True)
    for file in files:
        # a package may have listed the file below /lib or below /usr/lib
        pattern = "*" + str(file.resolve()).removeprefix("/usr")
        package = said("dpkg-query", "--search", pattern).split(":")[0]
        text = Path("/usr/share/doc", package, "copyright").read_text()
        (folder / f"{package}.txt").write_text(text)
        for name in re.findall(rf"{COMMON_LICENSES}/([\w.-]*\w)", text):
            shutil.copy(COMMON_LICENSES / name, folder / f"{name}.txt")


def call_setuptools(what: str, tree: Path, out: Path) -> Path:
    """Build an "sdist" or a "wheel" of the tree, and return where it is below out."""
    code = f"import setuptools.build_meta as b, sys; b.build_{what}(sys.argv[1])"
    out.mkdir(parents=True, exist_ok=True)
    said(sys.executable, "-c", code, out, cwd=tree)
    return next(out.glob("libcoll-*"))


def make_sdist(top: Path, work: Path) -> Path:
    """Make the source distribution, in a copy: setuptools writes into its sources."""
    source, tree = top / "bindings/python", work / "bindings/python"
    (tree / "libcoll/horovod").mkdir(parents=True)
    for file in [*source.glob("*"), *source.glob("libcoll/**/*")]:
        if file.is_file():
            shutil.copyfile(file, tree / file.relative_to(source))
    shutil.copyfile(top / "configure.ac", work / "configure.ac")
    shutil.copyfile(top / "LICENSE", tree / "LICENSE")
    return call_setuptools("sdist", tree, work / "sdist")


def make_wheel(sdist: Path, installed: argparse.Namespace, work: Path) -> Path:
    """Make a wheel of the source distribution, and put libcoll_bundle into it."""
    shutil.unpack_archive(sdist, work / "tree")
    pure = call_setuptools("wheel", next((work / "tree").iterdir()), work / "pure")
    tree = work / "wheel"
    shutil.unpack_archive(pure, tree, "zip")
    info = next(tree.glob("*.dist-info"))
    copy_licenses(fill_bundle(tree / "libcoll_bundle", installed), info / "licenses")
    shutil.copy(next(info.rglob("LICENSE")), info / "licenses/libcoll.txt")

    programs = sorted(p.name for p in (tree / "libcoll_bundle/bin").iterdir())
    with (info / "entry_points.txt").open("a") as points:
        points.write("\n[console_scripts]\n")
        points.writelines(f"{name} = libcoll_bundle:run\n" for name in programs)
    glibc = platform.libc_ver()[1].replace(".", "_")
    text = (info / "WHEEL").read_text().replace("Purelib: true", "Purelib: false")
    tag = f"py3-none-manylinux_{glibc}_{platform.machine()}"
    (info / "WHEEL").write_text(text.replace("py3-none-any", tag))
    (work / "packed").mkdir()
    said(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", work / "packed")
    return next((work / "packed").iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", required=True, help="the sources of libcoll")
    parser.add_argument("--bin", required=True, help="where its programs are installed")
    parser.add_argument("--lib", required=True, help="where libcoll.so.0 is installed")
    parser.add_argument("--ucx", required=True, help="where libucp.so.0 is")
    parser.add_argument("out", help="where the wheel and the sdist go")
    options = parser.parse_args()
    for name, folder in vars(options).items():
        setattr(options, name, Path(folder).resolve())
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        sdist = make_sdist(options.top, Path(work))
        for made in (sdist, make_wheel(sdist, options, Path(work))):
            at = shutil.copy(made, options.out)
            print(f"{at}: {made.stat().st_size / 1e6:.2f} MB")


main()
