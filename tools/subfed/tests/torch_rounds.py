#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch_rounds.py PROGRAM: networks of PyTorch through describe, check, cut for ten clients, a client in
PyTorch each, average and diff; the averages recomputed with numpy. torchvision's resnet18 in one file,
and a language model of bfloat16 in three files with an index, as Hugging Face keeps them."""
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
    print("skipped: rounds of PyTorch's networks with files:", missing)
    sys.exit(77)

program = sys.argv[1]
client = Path(__file__).resolve().parents[3] / "examples" / "update_torch.py"
types = {torch.float32: "F32", torch.int64: "I64", torch.bfloat16: "BF16"}
capacities = ["1", "1", "1/2", "1/2", "1/2", "1/4", "1/4", "1/8", "1/8", "1/16"]
weights = [1 + c % 3 for c in range(10)]
round_number = 3


def save(path, tensors):
    header, data, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        raw = tensor.contiguous().view(torch.int16 if tensor.dtype == torch.bfloat16 else tensor.dtype)
        raw = raw.numpy().tobytes()
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data))


def save_parts(folder, tensors, count):
    """The index of parts."""
    names = list(tensors)
    where = {}
    for p in range(count):
        file = f"model-{p + 1:05}-of-{count:05}.safetensors"
        chosen = names[p * len(names) // count:(p + 1) * len(names) // count]
        save(folder / file, {n: tensors[n] for n in chosen})
        where.update({n: file for n in chosen})
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": where}))
    return index


def load(path):
    """name -> (dtype's name, numbers); of bfloat16 as float32, which has them all."""
    if path.suffix == ".json":
        files = set(json.loads(path.read_text())["weight_map"].values())
        return {n: t for f in files for n, t in load(path.parent / f).items()}
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    header.pop("__metadata__", None)
    out = {}
    for name, e in header.items():
        part = raw[begin + e["data_offsets"][0]:begin + e["data_offsets"][1]]
        if e["dtype"] == "BF16":
            numbers = (np.frombuffer(part, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            numbers = np.frombuffer(part, {"F32": np.float32, "I64": np.int64}[e["dtype"]])
        out[name] = (e["dtype"], numbers.reshape(e["shape"]))
    return out


def rounded(doubles, dtype):
    """To the nearest of the type, once; ties to even."""
    if dtype != "BF16":
        return doubles.astype(np.float32)
    part, exponent = np.frexp(doubles)
    return np.ldexp(np.rint(part * 256) / 256, exponent).astype(np.float32)


def run(*words, status=0):
    start = time.time()
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout, time.time() - start


def indices(parts, description, capacity):
    """FedRolex, Eq. 4."""
    extents = {g["name"]: g["extent"] for g in description["groups"]}
    never = {g["name"] for g in description["groups"] if g.get("cut") == "never"}
    out, begin = [], 0
    for p in parts:
        if "whole" in p:
            out += range(begin, begin + p["whole"])
            begin += p["whole"]
            continue
        size = extents[p["group"]]
        kept = size if p["group"] in never else max(1, int(Fraction(capacity) * size))
        start = 0 if p["group"] in never else round_number % size
        block = p.get("block", 1)
        for copy in range(p.get("repeat", 1)):
            for i in range(kept):
                node = (start + i) % size
                out += range(begin + (copy * size + node) * block, begin + (copy * size + node + 1) * block)
        begin += p.get("repeat", 1) * size * block
    return out


def a_round(name, net, example, state, parts):
    folder = Path(tempfile.mkdtemp(prefix=f"subfed-{name}-"))
    networks.export(net, example, folder / "net.onnx")
    model = folder / "model.json"
    _, described = run(program, "describe", folder / "net.onnx", "--emit", "json", "--out", model)
    if parts == 1:
        server, new = folder / "server.safetensors", folder / "new.safetensors"
        save(server, state)
    else:
        server = save_parts(folder, state, parts)
        (folder / "new").mkdir()
        new = folder / "new" / server.name
    run(program, "check", "--model", model, server)
    (folder / "clients.csv").write_text("client,capacity,weight\n" + "".join(
        f"{c},{k},{weights[c]}\n" for c, k in enumerate(capacities)))
    run(program, "cut", "--model", model, "--server", server, "--clients", folder / "clients.csv",
        "--round", round_number, "--scheme", "rolling", "--out", folder / "cut")
    (folder / "updates").mkdir()
    for c in range(10):
        run(sys.executable, client, folder / "cut" / f"client-{c}.safetensors",
            folder / "updates" / f"{c}.safetensors")
    _, averaged = run(program, "average", "--model", model, "--server", server, "--out", new,
                      folder / "updates")

    description = json.loads(model.read_text())
    dimensions = {t["name"]: t["dimensions"] for t in description["tensors"]}
    olds, news = load(server), load(new)
    updates = [load(folder / "updates" / f"{c}.safetensors") for c in range(10)]
    assert set(news) == set(olds) == set(state)
    changed = cut = 0
    for tensor, (dtype, old) in olds.items():
        assert news[tensor][0] == dtype
        if dtype == "I64":
            assert np.array_equal(old, news[tensor][1]), tensor
            continue
        total, weight = np.full(old.shape, -0.0), np.zeros(old.shape)
        shape = dimensions.get(tensor) or [[{"whole": e}] for e in old.shape]
        for c, capacity in enumerate(capacities):
            at = np.ix_(*[indices(p, description, capacity) for p in shape])
            sent = updates[c][tensor][1]
            assert sent.shape == old[at].shape, (tensor, sent.shape)
            cut += sent.size < old.size
            total[at] += weights[c] * sent.astype(np.float64)
            weight[at] += weights[c]
        mean = rounded(total / np.maximum(weight, 1e-300), dtype)
        expected = np.where(weight > 0, mean, old)
        assert expected.tobytes() == news[tensor][1].tobytes(), tensor
        changed += int((old != news[tensor][1]).sum())
    assert cut > 0 and changed > 0
    text, _ = run(program, "diff", server, new, "--model", model, status=2)
    assert max(olds, key=lambda n: olds[n][1].size) in text
    subprocess.run(["rm", "-rf", folder], check=True)
    print(f"{name} in ten parts and back, to the bit; {changed} elements changed; described in "
          f"{described:.2f} s, averaged in {averaged:.2f} s")


torch.manual_seed(0)
net = torchvision.models.resnet18()
a_round("resnet18", net, torch.rand(1, 3, 224, 224), net.state_dict(), 1)
net = networks.LanguageModel()
a_round("language-model", net, networks.words(1000),
        {n: t.to(torch.bfloat16) for n, t in net.state_dict().items()}, 3)
