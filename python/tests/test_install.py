# SPDX-License-Identifier: MIT
"""A source distribution and a wheel, in a virtual environment that sees the system's packages."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile

import pytest

PYTHON = pathlib.Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not os.environ.get("SUBFED_EXT"), reason="SUBFED_EXT names no extension to pack")
def test_a_wheel_from_the_source_distribution_is_installed_and_does_the_ten_lines(tmp_path):
    pytest.importorskip("pip")
    pytest.importorskip("wheel")
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
    copy = tmp_path / "repository"  # so that nothing is built into the repository
    shutil.copytree(PYTHON.parent / "include", copy / "include")
    shutil.copytree(PYTHON, copy / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "tests"))
    shutil.copy(PYTHON.parent / "LICENSE", copy)
    subprocess.run([sys.executable, "setup.py", "-q", "sdist", "--dist-dir", tmp_path], check=True,
                   env=plain, cwd=copy / "python")
    (source,) = tmp_path.glob("subfed-*.tar.gz")
    with tarfile.open(source) as file:
        packed = {pathlib.PurePath(*pathlib.PurePath(n).parts[1:]) for n in file.getnames()}
    needed = {p.relative_to(copy) for p in (copy / "include").rglob("*.hpp")} | {
        p.relative_to(copy / "python") for p in (copy / "python" / "src").rglob("*.*") if p.is_file()
        and "egg-info" not in str(p)}
    needed |= {pathlib.Path(n) for n in ("CMakeLists.txt", "LICENSE", "README.md", "setup.py", "pyproject.toml")}
    assert needed - packed == set()
    shutil.rmtree(copy)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps",
                    "--no-index", "-w", tmp_path, source], check=True, env=plain, cwd=tmp_path)
    (wheel,) = tmp_path.glob("subfed-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("__init__.py", "__init__.pyi", "models.py", "models.pyi", "theory.pyi", "py.typed"):
        assert f"subfed/{name}" in names
    assert sum(n.startswith("subfed/_ext.") for n in names) == 1

    place = tmp_path / "venv"
    venv.create(place, system_site_packages=True, with_pip=False)
    python = place / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
                    "--no-index", wheel], check=True, env=plain, cwd=tmp_path)
    program = textwrap.dedent("""
        import subfed
        assert "site-packages" in subfed.__file__ and "venv" in subfed.__file__, subfed.__file__
        net = subfed.models.mlp([3, 4, 2])
        import numpy as np
        server = {t.name: np.zeros(t.shape, np.float32) for t in net.tensors}
        for round in range(5):
            updates = []
            for client in range(10):
                sub = subfed.draw(net, subfed.Rolling(), round=round, client=client, capacity=0.5)
                updates.append((sub, {k: v + 1 for k, v in subfed.slice(server, sub).items()}))
            subfed.average_cohort(net, updates, server)
        assert server["fc2.bias"].tolist() == [5, 5]
        print("done", subfed.__version__)
        """)
    environment = {**plain, "LD_PRELOAD": os.environ.get("LD_PRELOAD", "")}
    run = subprocess.run([python, "-c", program], check=True, env=environment, cwd=tmp_path,
                         capture_output=True, text=True)
    assert run.stdout.startswith("done 0.")
