#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""round_trip.py PROGRAM [--big BYTES]: a whole round with files between the program and numpy, and what
can go wrong. Everything is recomputed here from the definitions. --big: also averages a model of that
many bytes and watches the program's own memory."""
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: a round with files: numpy is not installed")
    sys.exit(77)

program = sys.argv[1]
big = int(sys.argv[sys.argv.index("--big") + 1]) if "--big" in sys.argv else 0
numpy_types = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64,
               "I32": np.int32, "U8": np.uint8, "BOOL": np.bool_, "F8_E4M3": np.uint8}


def write(path, tensors, metadata=None, order=None):
    """tensors: name -> (dtype's name, array)."""
    header, data, at = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name in order or tensors:
        dtype, array = tensors[name]
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def read(path):
    raw = Path(path).read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__", {})
    out = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        array = np.frombuffer(raw[8 + length + first:8 + length + last], numpy_types[entry["dtype"]])
        out[name] = (entry["dtype"], array.reshape(entry["shape"]).copy())
    return out, metadata


def run(*words, status=0, says=""):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert done.returncode == status, f"{words}: status {done.returncode}, expected {status}\n{text}"
    assert says in text, f"{words}: expected {says!r} in\n{text}"
    return done.stdout


folder = Path(tempfile.mkdtemp(prefix="subfed-files-"))
rng = np.random.default_rng(20240229)

# --- a model of every kind of tensor ---------------------------------------------------------------
extents = {"a": 8, "b": 6, "classes": 5}
described = {  # name -> (role, dimensions: a group, a number, or (group, repeat, block))
    "conv1.weight": ("parameter", ["a", 3, 3, 3]),
    "bn.weight": ("parameter", ["a"]),
    "bn.running_mean": ("statistic", ["a"]),
    "bn.num_batches_tracked": ("counter", []),
    "conv2.weight": ("parameter", ["b", "a", 3, 3]),
    "flat.weight": ("parameter", ["classes", ("b", 1, 4)]),
    "qkv.weight": ("parameter", [("b", 3, 1), "a"]),
    "mask": ("parameter", ["b"]),  # integers are kept whatever their role
    "personal": ("local", ["b"]),
}


def part(d):
    if isinstance(d, int):
        return [{"whole": d}]
    group, repeat, block = (d, 1, 1) if isinstance(d, str) else d
    return [{"group": group, "repeat": repeat, "block": block}]


model = folder / "model.json"
model.write_text(json.dumps({
    "format": "subfed model", "version": 1,
    "groups": [{"name": g, "extent": e, "cut": "never" if g == "classes" else "by scheme"}
               for g, e in extents.items()],
    "tensors": [{"name": n, "role": r, "dimensions": [part(d) for d in ds]}
                for n, (r, ds) in described.items()]}))


def extent(d):
    if isinstance(d, int):
        return d
    group, repeat, block = (d, 1, 1) if isinstance(d, str) else d
    return extents[group] * repeat * block


types = {"conv2.weight": "F16", "bn.num_batches_tracked": "I64", "mask": "I32", "qkv.weight": "F64"}
server = {}
for name, (_, ds) in described.items():
    dtype = types.get(name, "F32")
    shape = [extent(d) for d in ds]
    values = rng.integers(1, 100, shape) if dtype[0] == "I" else rng.standard_normal(shape)
    server[name] = (dtype, np.asarray(values, numpy_types[dtype]))
server["extra"] = ("F32", rng.standard_normal(4).astype(np.float32))  # no group touches it
server["scale"] = ("F8_E4M3", np.array([7, 250], np.uint8))           # not numbers to subfed
names = list(server)
one = folder / "server.safetensors"
write(one, server, {"format": "pt"}, sorted(names, key=lambda n: -server[n][1].itemsize))
# The same in two files with an index.
parts = folder / "parts"
parts.mkdir()
halves = {"model-1.safetensors": names[:5], "model-2.safetensors": names[5:]}
for file, chosen in halves.items():
    write(parts / file, {n: server[n] for n in chosen}, None,
          sorted(chosen, key=lambda n: -server[n][1].itemsize))
index = parts / "model.safetensors.index.json"
index.write_text(json.dumps({"metadata": {}, "weight_map": {n: f for f, ns in halves.items() for n in ns}}))

# --- ten clients -----------------------------------------------------------------------------------
round_number = 7
capacities = ["1", "1/2", "1/2", "1/3", "1/4", "1/4", "0.75", "1/6", "1", "1/2"]
weights = [1, 3, 0.5, 2, 1, 7, 1, 1.25, 1, 0]
clients = folder / "clients.csv"
clients.write_text("client,capacity,weight\n" +
                   "".join(f"{c},{k},{w}\n" for c, (k, w) in enumerate(zip(capacities, weights))))


def nodes(group, capacity):
    """FedRolex, Eq. 4."""
    size = extents[group]
    if group == "classes":
        return list(range(size))
    kept = max(1, int(Fraction(capacity) * size))
    return [(round_number + i) % size for i in range(kept)]


def places(d, capacity):
    if isinstance(d, int):
        return list(range(d))
    group, repeat, block = (d, 1, 1) if isinstance(d, str) else d
    return [(copy * extents[group] + node) * block + inner for copy in range(repeat)
            for node in nodes(group, capacity) for inner in range(block)]


def chosen(name, capacity):
    ds = described[name][1] if name in described else list(server[name][1].shape)
    return np.ix_(*[places(d, capacity) for d in ds]) if ds else ()


run("check", "--model", model, one, index, says="nothing wrong")
for source, out in ((one, "cut"), (index, "cut-parts")):
    run("cut", "--model", model, "--server", source, "--clients", clients, "--round", round_number,
        "--out", folder / out)
for c, capacity in enumerate(capacities):
    found, metadata = read(folder / "cut" / f"client-{c}.safetensors")
    assert set(found) == set(server) - {"personal"}, found.keys()
    for name in found:
        expected = server[name][1] if name == "scale" else server[name][1][chosen(name, capacity)]
        assert found[name][0] == server[name][0] and np.array_equal(found[name][1], expected), name
    assert metadata["client"] == str(c) and metadata["round"] == "7" and metadata["capacity"] == capacity
    same = (folder / "cut-parts" / f"client-{c}.safetensors").read_bytes()
    assert same == (folder / "cut" / f"client-{c}.safetensors").read_bytes()

# A client's file is not one that is read.
before = one.read_bytes()
own_file = folder / "own-file.csv"
own_file.write_text(f"client,capacity,file\n0,1,elsewhere/{one.name}\n")
run("cut", "--model", model, "--server", one, "--clients", own_file, "--round", round_number, "--out", one.parent,
    status=1, says=f"a client has the file {one}, which is read; nothing is written.")
assert one.read_bytes() == before

# --- clients train, in another precision and another order ----------------------------------------
updates = folder / "updates"
updates.mkdir()
sent = []
for c in range(len(capacities)):
    tensors, metadata = read(folder / "cut" / f"client-{c}.safetensors")
    for name, (dtype, array) in tensors.items():
        if dtype.startswith("F") and dtype != "F8_E4M3":
            wider = "F64" if c == 4 else "F16" if c == 5 else dtype
            noisy = (array + rng.standard_normal(array.shape)).astype(numpy_types[wider])
            tensors[name] = (wider, np.asarray(noisy))
    del tensors["scale"]
    shuffled = list(tensors)
    random.Random(c).shuffle(shuffled)
    shuffled.sort(key=lambda n: -tensors[n][1].itemsize)
    write(updates / f"{c}.safetensors", tensors, metadata, shuffled)
    sent.append(tensors)


def averaged(name):
    """[Rolex, Eq. 10], in doubles and in the order of the clients, rounded once."""
    dtype, old = server[name]
    if name in ("personal", "scale") or dtype[0] == "I":
        return old
    total, weight = np.full(old.shape, -0.0), np.zeros(old.shape)
    for c, capacity in enumerate(capacities):
        if weights[c] == 0:
            continue
        at = chosen(name, capacity)
        total[at] += weights[c] * sent[c][name][1].astype(np.float64)
        weight[at] += weights[c]
    held = weight > 0
    out = old.copy()
    out[held] = (total[held] / weight[held]).astype(old.dtype)
    return out


def same_as_expected(found):
    for name, (dtype, array) in found.items():
        assert dtype == server[name][0]
        assert array.tobytes() == averaged(name).tobytes(), name


new = folder / "new.safetensors"
run("average", "--model", model, "--server", one, "--out", new, updates, says="10 updates")
found, metadata = read(new)
assert set(found) == set(server) and metadata == {"format": "pt"}
same_as_expected(found)
assert not list(folder.glob("*.unfinished"))
# The same bytes in any order, on any number of threads, from a list, with every client twice refused.
files = [updates / f"{c}.safetensors" for c in range(len(capacities))]
for threads in (1, 2, 3):
    random.Random(threads).shuffle(files)
    again = folder / f"again-{threads}.safetensors"
    run("average", "--model", model, "--server", one, "--out", again, "--threads", threads, *files)
    assert again.read_bytes() == new.read_bytes()
listed = folder / "listed.csv"
listed.write_text("file,client,capacity,weight,round\n" +
                  "".join(f"updates/{c}.safetensors,{c},{k},{w},7\n"
                          for c, (k, w) in enumerate(zip(capacities, weights))))
again = folder / "from-list.safetensors"
run("average", "--model", model, "--server", one, "--out", again, "--clients", listed)
assert again.read_bytes() == new.read_bytes()
run("average", "--model", model, "--server", one, "--out", again, "--round", 7, files[0], files[0],
    status=1, says="client")
assert again.read_bytes() == new.read_bytes()
# Parts: the same tensors, in another folder.
other = folder / "other"
other.mkdir()
run("average", "--model", model, "--server", index, "--out", other / index.name, updates)
for file, chosen_names in halves.items():
    found, _ = read(other / file)
    assert set(found) == set(chosen_names)
    same_as_expected(found)
run("average", "--model", model, "--server", index, "--out", index, updates, status=1,
    says="name another folder")
run("diff", one, new, "--model", model, status=2, says="conv2.weight")
run("diff", new, new, says="no difference")
report = json.loads(run("average", "--model", model, "--server", one, "--out", again, "--json", updates))
assert report["clients"] == 10 and report["kept_tensors"] == ["scale"], report
cost = json.loads(run("cost", "--model", model, "--capacity", "1", "1/2", "--json"))
assert cost[0]["share"] == 1 and 0 < cost[1]["share"] < 1
described_file = json.loads(run("info", "--json", index))[0]
assert {t["name"] for t in described_file["tensors"]} == set(server)

# --- the same round with NumPy's .npz files and a list in JSON ---------------------------------------
rows = [{"client": c, "capacity": k, "weight": w} for c, (k, w) in enumerate(zip(capacities, weights))]
json_list = folder / "clients.json"
json_list.write_text(json.dumps(rows))
arrays = {n: a for n, (t, a) in server.items() if n != "scale"}
numpy_server = folder / "server.npz"
arrays["qkv.weight"] = np.asfortranarray(arrays["qkv.weight"])
np.savez(numpy_server, **arrays)
done = subprocess.run([program, "info", numpy_server], capture_output=True, text=True)
if "built without libzip" in done.stderr:
    print("skipped: .npz files: the program was built without libzip")
else:
    run("check", "--model", model, numpy_server, says="nothing wrong")
    run("cut", "--model", model, "--server", numpy_server, "--clients", json_list, "--round", round_number,
        "--out", folder / "cut-npz")
    numpy_updates = folder / "updates-npz"
    numpy_updates.mkdir()
    for c, capacity in enumerate(capacities):
        with np.load(folder / "cut-npz" / f"client-{c}.npz") as found:
            assert set(found.files) == set(arrays) - {"personal"}
            for name in found.files:
                assert np.array_equal(found[name], server[name][1][chosen(name, capacity)]), name
        changed = {n: a for n, (t, a) in sent[c].items()}
        (np.savez_compressed if c % 2 else np.savez)(numpy_updates / f"{c}.npz", **changed)
    listed_npz = folder / "listed.json"
    listed_npz.write_text(json.dumps([{**row, "file": f"updates-npz/{c}.npz", "round": 7}
                                      for c, row in enumerate(rows)]))
    numpy_new = folder / "new.npz"
    run("average", "--model", model, "--server", numpy_server, "--out", numpy_new, "--clients", listed_npz)
    with np.load(numpy_new) as found:
        assert set(found.files) == set(arrays)
        for name in found.files:
            assert found[name].dtype == server[name][1].dtype and found[name].shape == server[name][1].shape
            assert found[name].tobytes() == averaged(name).tobytes(), name
    again_npz = folder / "again.npz"
    run("average", "--model", model, "--server", numpy_server, "--out", again_npz, "--clients", listed_npz)
    assert again_npz.read_bytes() == numpy_new.read_bytes()
    run("diff", numpy_new, again_npz, says="no difference")
    # Metadata survives in the archive's comment: what cut wrote is averaged without a list.
    run("average", "--model", model, "--server", numpy_server, "--out", again_npz, folder / "cut-npz",
        says="10 updates")
    # Of different formats.
    run("average", "--model", model, "--server", numpy_server, "--out", folder / "mixed.npz", updates)
    assert (folder / "mixed.npz").read_bytes() == numpy_new.read_bytes()
    # Damaged and hostile ones.
    good = (numpy_updates / "0.npz").read_bytes()
    odd_npz = folder / "updates-npz" / "0.npz"

    def npz_refused(data, says):
        odd_npz.write_bytes(data)
        run("average", "--model", model, "--server", numpy_server, "--out", numpy_new, "--clients",
            listed_npz, status=1, says=says)
        assert not list(folder.glob("*.unfinished"))

    flipped = bytearray(good)
    flipped[400] ^= 1
    npz_refused(bytes(flipped), "CRC error")
    npz_refused(good[:-30], "no .npz file")
    npz_refused(b"", "no .npz file")
    npz_refused(good[:4] + b"\0" * 100, "no .npz file")
    claims = bytearray(good)
    at = good.index(b"PK\x01\x02")
    claims[at + 20:at + 28] = struct.pack("<II", 0xF0000000, 0xF0000000)  # sizes of the first entry
    npz_refused(bytes(claims), "")
    objects = io.BytesIO()
    np.savez(objects, x=np.array([{}], dtype=object))
    npz_refused(objects.getvalue(), "Python objects")
    odd_npz.write_bytes(good)
    for row, says in (({"client": 0}, 'the column "capacity" is missing'),
                      ({"client": 0, "capacity": "2"}, "row 1"), ("x", "it is no object"),
                      ({"client": 0, "capacity": 1, "colour": 3}, 'no column "colour"')):
        json_list.write_text(json.dumps([row]))
        run("cut", "--model", model, "--server", one, "--clients", json_list, "--out", folder / "no",
            status=1, says=says)
    json_list.write_text('{"client": 0}')
    run("cut", "--model", model, "--server", one, "--clients", json_list, "--out", folder / "no",
        status=1, says="no JSON array")

# --- a description from checkpoints of two widths, and from a model file -----------------------------
widths = []
for width in (8, 4):
    widths.append(folder / f"width-{width}.safetensors")
    write(widths[-1], {"fc1.weight": ("F32", np.zeros((width, 3), np.float32)),
                       "lstm.weight": ("F32", np.zeros((4 * width, width), np.float32)),
                       "fc2.weight": ("F32", np.zeros((2, width), np.float32)),
                       "steps": ("I64", np.zeros((), np.int64))}, None,
          ["steps", "fc1.weight", "lstm.weight", "fc2.weight"])
text = run("describe", *widths, says="doubts")
assert "could be copies" in text, text
found = json.loads(run("describe", *widths, "--emit", "json", "--copies", "lstm.weight:0:4"))
assert found["groups"] == [{"name": "width", "extent": 8}] or found["groups"][0]["extent"] == 8, found
described_tensors = {t["name"]: t for t in found["tensors"]}
assert described_tensors["lstm.weight"]["dimensions"][0][0]["repeat"] == 4
assert described_tensors["fc2.weight"]["dimensions"][0] == [{"whole": 2}]
assert described_tensors["steps"]["role"] == "counter"
run("describe", widths[0], status=1, says="expected two or more")
run("describe", *widths, "--copies", "nothing:0:4", status=1, says="nothing")
run("describe", *widths, "--copies", "lstm.weight", status=1, says="tensor:dimension:times")
run("describe", model, says="qkv.weight")
assert run("describe", model, "--emit", "dot").startswith(("graph", "digraph"))

# --- a client in PyTorch ---------------------------------------------------------------------------
client = Path(__file__).resolve().parents[3] / "examples" / "update_torch.py"
trained = folder / "trained.safetensors"
done = subprocess.run([sys.executable, client, folder / "cut" / "client-3.safetensors", trained],
                      capture_output=True, text=True)
if "No module named" in done.stderr:
    print("skipped: a client in PyTorch, which is not installed")
else:
    assert done.returncode == 0, done.stderr
    received, metadata = read(folder / "cut" / "client-3.safetensors")
    found, same = read(trained)
    assert same == metadata and set(found) == set(received)
    for name in ("conv1.weight", "conv2.weight"):
        step = found[name][1].astype(np.float64) - received[name][1].astype(np.float64)
        assert found[name][0] == received[name][0] and 0.001 < np.abs(step).mean() < 0.1, name
    run("average", "--model", model, "--server", one, "--out", again, trained, says="1 updates")

# --- one client put back ---------------------------------------------------------------------------
put = folder / "put.safetensors"
run("scatter", "--model", model, "--server", one, "--out", put, updates / "5.safetensors")
found, _ = read(put)
for name in server:
    expected = server[name][1].copy()
    if name not in ("personal", "scale"):
        expected[chosen(name, capacities[5])] = sent[5][name][1]
    assert found[name][1].tobytes() == expected.tobytes(), name

# --- what does not fit, is damaged or hostile ------------------------------------------------------
before = new.read_bytes()


def refused(says, *words):
    run("average", "--model", model, "--server", one, "--out", new, *words, status=1, says=says)
    assert new.read_bytes() == before and not list(folder.glob("*.unfinished"))


bad = folder / "bad.safetensors"
tensors, metadata = read(updates / "1.safetensors")
cases = {
    'there is no tensor "bn.weight"': {n: t for n, t in tensors.items() if n != "bn.weight"},
    'tensor "bn.weight" has the shape (3), expected (4)': {**tensors, "bn.weight": ("F32", np.zeros(3, np.float32))},
    'elements of type int32, expected float': {**tensors, "bn.weight": ("I32", np.zeros(4, np.int32))},
    'has elements of type': {**tensors, "bn.weight": ("F8_E4M3", np.zeros(4, np.uint8))},
}
for says, wrong in cases.items():
    write(bad, wrong, metadata, sorted(wrong, key=lambda n: -wrong[n][1].itemsize))
    refused(says, bad)
    out = run("average", "--model", model, "--server", one, "--out", folder / "skipped.safetensors",
              "--skip-bad", bad, *files, says="left out")
    assert says in out and (folder / "skipped.safetensors").read_bytes() == before
write(bad, tensors, {k: v for k, v in metadata.items() if k != "capacity"},
      sorted(tensors, key=lambda n: -tensors[n][1].itemsize))
refused("the metadata lacks the capacity", bad)
whole = (updates / "1.safetensors").read_bytes()
for damaged, says in ((b"", "0 bytes"), (whole[:7], "7 bytes"), (whole[:-1], "the tensors end at byte"),
                      (b"\xff" * 8 + whole[8:], "maximum"), (struct.pack("<Q", 99_999_999) + whole[8:], "only")):
    bad.write_bytes(damaged)
    refused(says, bad)
refused("cannot be read", folder / "nowhere.safetensors")
for name in ("../server.safetensors", "/etc/passwd", "a/b", "", "."):
    hostile = parts / "hostile.json"
    hostile.write_text(json.dumps({"weight_map": {"x": name}}))
    run("info", hostile, status=1, says="not the name of a file")
hostile.write_text(json.dumps({"weight_map": {"x": "model-1.safetensors"}}))
run("info", hostile, status=1, says="which lacks it")
# What the metadata says wrong is told with the file; --skip-bad leaves that file out, and no other.
for key, text, says in (("capacity", "2", 'The capacity "2" is out of range'),
                        ("scheme", "none", 'There is no scheme "none"'),
                        ("scheme", "random:pool=0", "the pool size is 0"),
                        ("scheme", "rolling:step=1:step=2", 'the option "step" twice')):
    write(bad, tensors, {**metadata, key: text}, sorted(tensors, key=lambda n: -tensors[n][1].itemsize))
    refused("bad.safetensors: ", bad)
    refused(says, bad)
    out = run("average", "--model", model, "--server", one, "--out", folder / "skipped.safetensors",
              "--skip-bad", bad, *files, says="left out")
    assert says in out and (folder / "skipped.safetensors").read_bytes() == before
refused('There is no scheme "none"', "--skip-bad", "--scheme", "none", *files)
# What is not UTF-8 in a file's name does not cost the report.
latin = os.fsencode(folder) + b"/k\xfcrzer.safetensors"
os.rename(bad, latin)
report = json.loads(run("average", "--model", model, "--server", one, "--out", again, "--json",
                        "--skip-bad", os.fsdecode(latin), *files))
assert report["clients"] == 10 and len(report["bad_files"]) == 1, report
assert json.loads(run("info", "--json", os.fsdecode(latin)))[0]["tensors"]
# Numbers are read whole; what is none, or none of the type, is no other number instead.
for option, value in (("--step", ""), ("--step", "1,5"), ("--step", "nan"), ("--step", "1e400"),
                      ("--round", ""), ("--round", "-1"), ("--round", "18446744073709551616"),
                      ("--seed", "-1"), ("--seed", "0x"), ("--threads", "100000"), ("--threads", "-1")):
    refused(f"{option} is ", option, value, *files)
# What is no file is not replaced by one.
pipe = folder / "pipe"
os.mkfifo(pipe)
for target, says in ((pipe, "not a regular file"), (folder, "Is a directory")):
    kind = os.stat(target).st_mode
    run("average", "--model", model, "--server", one, "--out", target, *files, status=1, says=says)
    run("scatter", "--model", model, "--server", one, "--out", target, files[0], status=1, says=says)
    assert os.stat(target).st_mode == kind and not list(folder.glob("*.unfinished"))
# Lists as spreadsheets write them, and what is ambiguous in one.
table = folder / "table.csv"


def listed_as(data, says=None):
    table.write_bytes(data)
    run("cut", "--model", model, "--server", one, "--clients", table, "--round", round_number, "--out",
        folder / "cut-table", status=1 if says else 0, says=says or "wrote")


listed_as(b'\xef\xbb\xbf"client","capacity","file"\r\n"3","1/3", "a, b ""c"".safetensors" \r\n\r\n')
same = (folder / "cut-table" / 'a, b "c".safetensors').read_bytes()
listed_as(b"client,capacity,file\n3,1/3,again.safetensors\n")
assert same == (folder / "cut-table" / "again.safetensors").read_bytes()
listed_as(b'client,capacity,file\n0,1,"a', "line 2: a quote is not closed")
listed_as(b'client,capacity,file\n0,1,"a"b', 'line 2: after the field "a" in quotes a comma is expected')
listed_as(b'"client","capacity"\n"0","1",""\n', "it has 3 fields")
json_list.write_text('[{"client": 0, "client": 1, "capacity": 1}]')
run("cut", "--model", model, "--server", one, "--clients", json_list, "--out", folder / "no", status=1,
    says='the key "client" occurs twice')
json_list.write_text('[{"client": 0, "capacity": 1e400}]')
run("cut", "--model", model, "--server", one, "--clients", json_list, "--out", folder / "no", status=1,
    says="a number that no double can hold")
json_list.write_text(json.dumps([{"client": 0, "capacity": 1, "file": "a\0b"}]))
run("cut", "--model", model, "--server", one, "--clients", json_list, "--out", folder / "no", status=1,
    says="a character 0")
# Deltas of integers may have another type; what was too large, or left out, is said.
small = {"w": ("F16", np.zeros(3, np.float16)), "steps": ("U8", np.array(100, np.uint8))}
small_model, small_server = folder / "small.json", folder / "small.safetensors"
small_model.write_text(json.dumps({"format": "subfed model", "version": 1, "groups": [], "tensors": [
    {"name": "w", "dimensions": [[{"whole": 3}]]}, {"name": "steps", "role": "counter", "dimensions": []}]}))
key = {"client": "0", "round": "0", "capacity": "1"}
write(small_server, small, None)
write(bad, {"w": ("F32", np.array([1e30, 1, np.nan], np.float32)), "steps": ("I64", np.array(-3, np.int64))},
      key, ["steps", "w"])
out = run("average", "--model", small_model, "--server", small_server, "--out", again, "--content", "deltas",
          "--integers", "sum", "--non-finite", "skip-element", bad, says="infinite: 1 results")
assert "left out: 1 values" in out, out
found, _ = read(again)
assert found["steps"][1] == 97 and np.array_equal(found["w"][1], np.array([np.inf, 1, 0], np.float16))
run("average", "--model", small_model, "--server", small_server, "--out", again, bad, status=1,
    says="expected uint8")
# A model with tensors at odd addresses.
write(small_server, small, None, ["steps", "w"])
run("average", "--model", small_model, "--server", small_server, "--out", again, "--content", "deltas",
    "--integers", "sum", "--non-finite", "skip-element", bad)
assert {n: a.tobytes() for n, (t, a) in read(again)[0].items()} == \
    {n: a.tobytes() for n, (t, a) in found.items()}
write(bad, {"w": ("F32", np.array([7, 8, 9], np.float32)), "steps": ("U8", np.array(5, np.uint8))}, key)
run("scatter", "--model", small_model, "--server", small_server, "--out", again, bad)
assert np.array_equal(read(again)[0]["w"][1], [7, 8, 9]) and read(again)[0]["steps"][1] == 5
tensors, metadata = read(updates / "1.safetensors")
# An update with a tensor at an odd address is averaged all the same.
odd = folder / "odd.safetensors"
tensors, metadata = read(updates / "1.safetensors")
tensors["a first byte"] = ("U8", np.zeros(1, np.uint8))
write(odd, tensors, metadata, ["a first byte"] + [n for n in tensors if n != "a first byte"])
run("average", "--model", model, "--server", one, "--out", folder / "odd-out.safetensors",
    *[f if f.name != "1.safetensors" else odd for f in files])
assert (folder / "odd-out.safetensors").read_bytes() == before

# What is printed for people fits a terminal of 80 columns.
for words in ([], *([c] for c in ("info", "check", "cut", "average", "scatter", "diff", "cost", "describe",
                                  "coverage"))):
    for line in run(*words, "--help").splitlines():
        assert len(line) <= 80, (words, line)
for line in run("coverage", "--rounds", 5, "--repetitions", 2, "--threads", 1, "--out",
                folder / "coverage").splitlines():
    assert len(line) <= 80 or str(folder) in line, line

# --- larger than memory ----------------------------------------------------------------------------
wide = folder / "wide.json"
rows = 25_000_000_000 // 1024
wide.write_text(json.dumps({"format": "subfed model", "version": 1,
                            "groups": [{"name": "wide", "extent": rows}],
                            "tensors": [{"name": "w", "dimensions": [[{"group": "wide"}], [{"whole": 1024}]]}]}))


def sparse(path, shape, metadata=None):
    size = 4 * shape[0] * shape[1]
    header = {"w": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, size]}}
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + size)


try:
    sparse(folder / "wide.safetensors", (rows, 1024))  # 100 GB
    sparse(folder / "half.safetensors", (rows // 2, 1024),
           {"client": "0", "round": "0", "capacity": "1/2", "scheme": "static"})
    run("average", "--dry-run", "--model", wide, "--server", folder / "wide.safetensors",
        "--out", folder / "x.safetensors", folder / "half.safetensors", says="100.00 GB")
except OSError as reason:
    print("skipped: a sparse file of 100 GB:", reason)

# A run that is killed leaves the old model whole; the next one removes what it left.
killed = folder / "killed"
killed.mkdir()
(killed / "model.safetensors").write_bytes(before)
for wait in (0.0, 0.005, 0.01, 0.02):
    child = subprocess.Popen([program, "average", "--model", str(model), "--server", str(one), "--out",
                              str(killed / "model.safetensors"), *map(str, files)],
                             stdout=subprocess.DEVNULL)
    time.sleep(wait)
    child.kill()
    child.wait()
    assert (killed / "model.safetensors").read_bytes() == before
run("average", "--model", model, "--server", one, "--out", killed / "model.safetensors", *files)
assert [f.name for f in killed.iterdir()] == ["model.safetensors"]

if big:
    rows = big // 4096
    wide.write_text(wide.read_text().replace(str(25_000_000_000 // 1024), str(rows)))
    with open(folder / "wide.safetensors", "wb"):
        pass
    rng = np.random.default_rng(1)
    block = rng.standard_normal((1024, 1024)).astype(np.float32)

    def filled(path, count, metadata=None):
        size = 4096 * count
        header = {"w": {"dtype": "F32", "shape": [count, 1024], "data_offsets": [0, size]}}
        if metadata:
            header["__metadata__"] = metadata
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for at in range(0, count, 1024):
                file.write(block[:min(1024, count - at)].tobytes())

    filled(folder / "wide.safetensors", rows)
    filled(folder / "half.safetensors", rows // 2,
           {"client": "0", "round": "0", "capacity": "1/2", "scheme": "static"})
    filled(folder / "whole.safetensors", rows,
           {"client": "1", "round": "0", "capacity": "1", "scheme": "static"})
    start = time.time()
    child = subprocess.Popen([program, "average", "--model", str(wide), "--server",
                              str(folder / "wide.safetensors"), "--out", str(folder / "x.safetensors"),
                              str(folder / "half.safetensors"), str(folder / "whole.safetensors")])
    most = 0
    while child.poll() is None:
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
            most = max(most, int(status.split("RssAnon:")[1].split()[0]))
        except (OSError, IndexError):
            pass
        time.sleep(0.02)
    took = time.time() - start
    assert child.returncode == 0
    start = time.time()
    subprocess.run(["cp", folder / "wide.safetensors", folder / "y.safetensors"], check=True)
    print(f"{big / 1e9:.2f} GB averaged with 1.5 times as many bytes of updates in {took:.2f} s "
          f"(cp of the model: {time.time() - start:.2f} s); memory of its own at most {most / 1e3:.1f} MB")
    assert most < 64_000, most

subprocess.run(["rm", "-rf", str(folder)], check=True)
print("the round trip with files: all as expected")
