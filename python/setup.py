# SPDX-License-Identifier: MIT
"""Builds the package from the repository: CMake compiles the extension over the headers beside it.

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

HERE = pathlib.Path(__file__).resolve().parent


def version():
    text = (HERE.parent / "include/subfed/version.hpp").read_text()
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


setup(version=version(), ext_modules=[Extension("subfed._ext", [])],
      cmdclass={"build_ext": CMakeBuild})
