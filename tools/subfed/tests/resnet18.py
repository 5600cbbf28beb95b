#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""resnet18.py PROGRAM: torchvision's resnet18 through describe, check, cut for ten clients, a client in
PyTorch each, average and diff; the average recomputed with numpy."""
import json
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

try:
    import numpy as np
    import torch
    import torchvision

    import networks
except ImportError as missing:
    print("skipped: resnet18 with files:", missing)
    sys.exit(77)

program = sys.argv[1]
here = Path(__file__).resolve()
folder = Path(tempfile.mkdtemp(prefix="subfed-resnet18-"))
types = {torch.float32: "F32", torch.int64: "I64"}


def save(path, tensors, metadata):
    header, data, at = {"__metadata__": metadata}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        raw = tensor.numpy().tobytes()
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data))


def load(path):
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    metadata = header.pop("__metadata__", {})
    out = {}
    for name, e in header.items():
        part = raw[begin + e["data_offsets"][0]:begin + e["data_offsets"][1]]
        out[name] = np.frombuffer(part, {"F32": np.float32, "I64": np.int64}[e["dtype"]]).reshape(e["shape"])
    return out, metadata


def run(*words, status=0):
    start = time.time()
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout, time.time() - start


torch.manual_seed(0)
net = torchvision.models.resnet18()
networks.export(net, torch.rand(1, 3, 224, 224), folder / "net.onnx")
_, took = run(program, "describe", folder / "net.onnx", "--emit", "json", "--out", folder / "model.json")
server = folder / "server.safetensors"
save(server, net.state_dict(), {})
run(program, "check", "--model", folder / "model.json", server)
capacities = ["1", "1", "1/2", "1/2", "1/2", "1/4", "1/4", "1/8", "1/8", "1/16"]
(folder / "clients.csv").write_text("client,capacity,weight\n" + "".join(
    f"{c},{k},{1 + c % 3}\n" for c, k in enumerate(capacities)))
run(program, "cut", "--model", folder / "model.json", "--server", server, "--clients",
    folder / "clients.csv", "--round", 3, "--scheme", "rolling", "--out", folder / "cut")
(folder / "updates").mkdir()
for c in range(10):
    run(sys.executable, here.parents[3] / "examples" / "update_torch.py",
        folder / "cut" / f"client-{c}.safetensors", folder / "updates" / f"{c}.safetensors")
_, averaged = run(program, "average", "--model", folder / "model.json", "--server", server,
                  "--out", folder / "new.safetensors", folder / "updates")

description = json.loads((folder / "model.json").read_text())
extents = {g["name"]: g["extent"] for g in description["groups"]}
never = {g["name"] for g in description["groups"] if g.get("cut") == "never"}


def indices(parts, capacity):
    out, begin = [], 0
    for p in parts:
        if "whole" in p:
            out += range(begin, begin + p["whole"])
            begin += p["whole"]
            continue
        size = extents[p["group"]]
        kept = size if p["group"] in never else max(1, int(Fraction(capacity) * size))
        start = 0 if p["group"] in never else 3 % size
        for copy in range(p.get("repeat", 1)):
            for i in range(kept):
                node = (start + i) % size
                block = p.get("block", 1)
                out += range(begin + (copy * size + node) * block, begin + (copy * size + node + 1) * block)
        begin += p.get("repeat", 1) * size * p.get("block", 1)
    return out


dimensions = {t["name"]: t["dimensions"] for t in description["tensors"]}
old, _ = load(server)
new, _ = load(folder / "new.safetensors")
updates = [load(folder / "updates" / f"{c}.safetensors")[0] for c in range(10)]
changed = 0
for name in old:
    if old[name].dtype == np.int64:
        assert np.array_equal(old[name], new[name]), name
        continue
    total, weight = np.full(old[name].shape, -0.0), np.zeros(old[name].shape)
    for c, capacity in enumerate(capacities):
        parts = dimensions.get(name) or [[{"whole": e}] for e in old[name].shape]
        at = np.ix_(*[indices(p, capacity) for p in parts])
        total[at] += (1 + c % 3) * updates[c][name].astype(np.float64)
        weight[at] += 1 + c % 3
    expected = np.where(weight > 0, total / np.maximum(weight, 1e-300), old[name]).astype(np.float32)
    assert expected.tobytes() == new[name].tobytes(), name
    changed += int((old[name] != new[name]).sum())
text, _ = run(program, "diff", server, folder / "new.safetensors", "--model", folder / "model.json",
              status=2)
assert "layer4.1.conv2.weight" in text
subprocess.run(["rm", "-rf", folder], check=True)
print(f"resnet18 in ten parts and back, to the bit; {changed} elements changed; described in "
      f"{took:.2f} s, averaged in {averaged:.2f} s")
