# SPDX-License-Identifier: MIT
"""Builds the package: CMake compiles the extension over the library's headers, which lie beside this folder
in the repository and inside of it in a source distribution.

SUBFED_EXT names an extension that has been built already, which is taken as it is.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = HERE if (HERE / "include").exists() else HERE.parent


def version():
    text = (LIBRARY / "include/subfed/version.hpp").read_text()
    return ".".join(re.search(rf"^#define SUBFED_VERSION_{part} (\d+)$", text, re.M).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        to = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        to.parent.mkdir(parents=True, exist_ok=True)
        if os.environ.get("SUBFED_EXT"):
            shutil.copy(os.environ["SUBFED_EXT"], to)
            return
        build = pathlib.Path(self.build_temp).resolve()
        build.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cmake", "-S", HERE, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                        f"-DSUBFED_PYTHON={sys.executable}", f"-DSUBFED_PYTHON_OUTPUT={to.parent}",
                        *os.environ.get("CMAKE_ARGS", "").split()], check=True)
        jobs = self.parallel or os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1
        subprocess.run(["cmake", "--build", build, "--target", "subfed_ext", "--parallel", str(jobs)],
                       check=True)


class SourceDistribution(sdist):
    """With what the extension is built from: the binding, and the library's headers and licence."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        to = pathlib.Path(base_dir)
        for path in [HERE / "CMakeLists.txt", *(HERE / "src/cpp").iterdir()]:
            (to / path.relative_to(HERE)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to / path.relative_to(HERE))
        for path in [LIBRARY / "LICENSE", *(LIBRARY / "include").rglob("*.hpp")]:
            (to / path.relative_to(LIBRARY)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to / path.relative_to(LIBRARY))


setup(version=version(), ext_modules=[Extension("subfed._ext", [])],
      cmdclass={"build_ext": CMakeBuild, "sdist": SourceDistribution})
