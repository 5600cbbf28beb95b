#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""update_torch.py IN OUT: a client in PyTorch, between `subfed cut` and `subfed average`. It reads its
part of the model, trains, and writes the update with the same metadata. (The package safetensors reads
and writes such files too: safe_open, metadata() and save_file.)"""
import json
import struct
import sys

import torch

types = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
         "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}

raw = bytearray(open(sys.argv[1], "rb").read())
begin = 8 + struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:begin])
state = {}
for name, entry in header.items():
    if name != "__metadata__" and entry["dtype"] in types:
        first, last = entry["data_offsets"]
        part = raw[begin + first:begin + last]
        state[name] = torch.frombuffer(part, dtype=types[entry["dtype"]]).reshape(entry["shape"])

# Here net.load_state_dict(state) and the training loop; for the sake of the example, noise.
torch.manual_seed(int(header["__metadata__"]["client"]))
for tensor in state.values():
    if tensor.is_floating_point():
        tensor += 0.01 * torch.randn(tensor.shape).to(tensor.dtype)

for name, tensor in state.items():
    first, last = header[name]["data_offsets"]
    raw[begin + first:begin + last] = bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy())
open(sys.argv[2], "wb").write(raw)
