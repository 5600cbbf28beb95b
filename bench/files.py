#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/files.py PROGRAM [--folder F] [--bytes N] [--repeats N] [--json FILE]: the program subfed against
cp, which moves as many bytes as it reads and writes. A convolutional network of N bytes, ten clients (two
each of 1, 1/2, 1/4, 1/8, 1/16). On a disk both are synced; the first run of each finds the files in no
cache where the system allows to drop it. /dev/shm as folder shows memory's speed."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("program")
arguments.add_argument("--folder", default=None)
arguments.add_argument("--bytes", type=int, default=500_000_000)
arguments.add_argument("--repeats", type=int, default=3)
arguments.add_argument("--threads", type=int, nargs="*", default=[1, 2])
arguments.add_argument("--schemes", nargs="*", default=["rolling", "random"])
arguments.add_argument("--json", default=None)
options = arguments.parse_args()

folder = Path(tempfile.mkdtemp(prefix="subfed-bench-", dir=options.folder))
width = 512
layers = max(1, options.bytes // (4 * 9 * width * width))
groups = [{"name": f"c{i}", "extent": width} for i in range(layers + 1)]
tensors = [{"name": f"conv{i}.weight", "dimensions": [[{"group": f"c{i + 1}"}], [{"group": f"c{i}"}],
                                                      [{"whole": 3}], [{"whole": 3}]]}
           for i in range(layers)]
model = folder / "model.json"
model.write_text(json.dumps({"format": "subfed model", "version": 1, "groups": groups, "tensors": tensors}))
size = 4 * 9 * width * width
header = {t["name"]: {"dtype": "F32", "shape": [width, width, 3, 3],
                      "data_offsets": [i * size, (i + 1) * size]} for i, t in enumerate(tensors)}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
server = folder / "server.safetensors"
noise = os.urandom(size // 4)
one = b"".join(bytes((b & 0xBF,)) if i % 4 == 3 else bytes((b,)) for i, b in enumerate(noise[:65536]))
with open(server, "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    for _ in range(layers):
        file.write((one * (size // len(one) + 1))[:size])
clients = folder / "clients.csv"
capacities = ["1", "1", "1/2", "1/2", "1/4", "1/4", "1/8", "1/8", "1/16", "1/16"]
clients.write_text("client,capacity\n" + "".join(f"{c},{k}\n" for c, k in enumerate(capacities)))
on_disk = os.stat(folder).st_dev != os.stat("/dev/shm").st_dev if os.path.exists("/dev/shm") else True


def drop_caches():
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    except OSError:
        return False


def timed(*commands):
    start = time.perf_counter()
    for command in commands:
        subprocess.run([str(w) for w in command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def copy_of(files, to):
    """cp of the files, and what a save needs: the bytes on the disk."""
    names = [to / f.name for f in files]
    return [["cp", *files, to], *([["sync", *names]] if on_disk else [])]


def stream(bytes_moved):
    """A file whose copy reads and writes as many bytes."""
    out = folder / "same-bytes"
    with open(out, "wb") as file:
        left = bytes_moved // 2
        with open(server, "rb") as source:
            while left > 0:
                part = source.read(min(left, 1 << 24))
                if not part:
                    source.seek(0)
                    continue
                file.write(part)
                left -= len(part)
    return out


def empty(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()


rows = []
for scheme in options.schemes:
    cut = folder / "cut"
    command = ["cut", "--model", model, "--server", server, "--clients", clients, "--scheme", scheme,
               "--round", 3, "--out", cut]
    subprocess.run([options.program, *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    sent = sum(f.stat().st_size for f in cut.iterdir())
    new = folder / "new.safetensors"
    average = ["average", "--model", model, "--server", server, "--out", new, cut]
    to = folder / "copies"
    for name, words, read, written in (("cut", command, sent, sent),
                                       ("average", average, sent, server.stat().st_size)):
        same = stream(read + written)
        for threads in options.threads:
            full = [options.program, *words, "--threads", threads]
            ours, theirs = [], []
            for _ in range(options.repeats):
                for out in (to, *([cut] if name == "cut" else [])):
                    empty(out)
                new.unlink(missing_ok=True)
                # In turns, so that a slow minute is slow for both.
                theirs.append(timed(*copy_of([same], to)))
                empty(to)
                ours.append(timed(full))
            row = {"scheme": scheme, "work": name, "threads": threads, "read": read, "written": written,
                   "seconds": statistics.median(ours), "cp": statistics.median(theirs), "cache": "warm"}
            rows.append(row)
        if on_disk and drop_caches():
            new.unlink(missing_ok=True)
            theirs = timed(*copy_of([same], to))
            empty(to)
            if name == "cut":
                empty(cut)
            drop_caches()
            ours = timed([options.program, *words])
            rows.append({"scheme": scheme, "work": name, "threads": os.cpu_count(), "read": read,
                         "written": written, "seconds": ours, "cp": theirs, "cache": "cold"})
        empty(to)
        same.unlink()

print(f"{server.stat().st_size / 1e9:.2f} GB of model, {'a disk' if on_disk else 'memory'}")
print("| scheme | work | threads | cache | read, MB | written, MB | s | GB/s | cp of as many bytes, s | of cp |")
print("|---|---|---|---|---|---|---|---|---|---|")
for r in rows:
    moved = r["read"] + r["written"]
    print(f"| {r['scheme']} | {r['work']} | {r['threads']} | {r['cache']} | {r['read'] / 1e6:.0f} | "
          f"{r['written'] / 1e6:.0f} | {r['seconds']:.2f} | {moved / r['seconds'] / 1e9:.2f} | "
          f"{r['cp']:.2f} | {r['seconds'] / r['cp']:.2f} |")
if options.json:
    Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
shutil.rmtree(folder)
