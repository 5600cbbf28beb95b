# SPDX-License-Identifier: MIT
"""A wheel, in a virtual environment that sees the system's packages."""
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile

import pytest

PYTHON = pathlib.Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not os.environ.get("SUBFED_EXT"), reason="SUBFED_EXT names no extension to pack")
def test_the_wheel_is_installed_and_does_the_ten_lines(tmp_path):
    pytest.importorskip("pip")
    pytest.importorskip("wheel")
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
    source = tmp_path / "repository" / "python"  # so that nothing is built into the repository
    source.mkdir(parents=True)
    (source.parent / "include").symlink_to(PYTHON.parent / "include")
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(PYTHON / name, source)
    shutil.copytree(PYTHON / "src" / "subfed", source / "src" / "subfed")
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
