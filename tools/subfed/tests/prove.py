#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Derives descriptions of PyTorch's networks from their ONNX files and proves them by running the
networks:

- all nodes in another order give the same outputs, all groups at once and each alone; with one tensor
  left out of it they do not
- sub-networks of 1/2 and 0.3 of the nodes run, and equal the network with the other nodes at zero, for
  all groups over whose nodes nothing is computed
- descriptions by hand agree

  prove.py --tool build/tools/subfed/subfed --build build/networks [--all] [--by-hand folder] [name..]
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import time
import types

try:
    import torch
    import torchvision  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import networks
from torch import nn


class Description:
    """A model file."""

    def __init__(self, text):
        data = json.loads(text)
        self.extents = {g["name"]: g["extent"] for g in data["groups"]}
        self.cut = [g["name"] for g in data["groups"] if g.get("cut") != "never"]
        self.dimensions = {t["name"]: t["dimensions"] for t in data["tensors"]}

    def index(self, part, nodes):
        """The elements of a part, in the order of the nodes that are held."""
        repeat, block = part.get("repeat", 1), part.get("block", 1)
        extent = part["whole"] if "whole" in part else self.extents[part["group"]]
        order = nodes.get(part.get("group"), range(extent))
        return [
            (c * extent + n) * block + i for c in range(repeat) for n in order for i in range(block)
        ]

    def elements(self, part):
        extent = part["whole"] if "whole" in part else self.extents[part["group"]]
        return extent * part.get("repeat", 1) * part.get("block", 1)

    def selected(self, name, tensor, nodes):
        for r, parts in enumerate(self.dimensions[name]):
            if not any(p.get("group") in nodes for p in parts):
                continue
            at, index = 0, []
            for part in parts:
                index += [at + i for i in self.index(part, nodes)]
                at += self.elements(part)
            tensor = tensor.index_select(r, torch.tensor(index, dtype=torch.long))
        return tensor

    def shape(self, name):
        return [sum(self.elements(p) for p in parts) for parts in self.dimensions[name]]

    def tensors_of(self, group):
        return [
            name
            for name, dimensions in self.dimensions.items()
            if any(p.get("group") == group for parts in dimensions for p in parts)
        ]

    def form(self):
        """Equal for descriptions that differ in the names of groups, and in what is never cut."""
        names = {}
        out = {}
        for tensor in sorted(self.dimensions):
            dims = []
            for parts in self.dimensions[tensor]:
                own = []
                for p in parts:
                    group = p.get("group")
                    bound = group in self.cut
                    label = names.setdefault(group, len(names)) if bound else "whole"
                    count = p.get("block", 1), p.get("repeat", 1)
                    own.append((label, *(count if bound else (self.elements(p),))))
                dims.append(tuple(own))
            out[tensor] = tuple(dims)
        return out


def randomise(net):
    """Values that hide nothing."""
    for name, tensor in net.state_dict().items():
        if not tensor.is_floating_point():
            continue
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 2)
        elif tensor.dim() > 1:
            # Outputs neither vanish nor grow.
            inside = tensor[0].numel()
            tensor.normal_(0, 1.4 / inside**0.5)
        else:
            tensor.uniform_(0.5, 1.5).mul_(torch.where(torch.rand(tensor.shape) < 0.3, -1.0, 1.0))
    return net


def output(net, x):
    with torch.no_grad():
        out = net(x)
    return out["out"] if isinstance(out, dict) else out


def difference(a, b):
    return float((a - b).abs().max() / a.abs().max().clamp_min(1e-30))


def output_with(net, tensors, x):
    """With other values in some tensors, for one run."""
    state = net.state_dict()
    before = {name: state[name].clone() for name in tensors}
    for name, tensor in tensors.items():
        state[name].copy_(tensor)
    out = output(net, x)
    for name, tensor in before.items():
        state[name].copy_(tensor)
    return out


def other_order(count):
    """No node stays where it is, and it is more than a rotation."""
    if count < 2:
        return list(range(count))
    order = torch.randperm(count)
    out = [0] * count
    for i in range(count):
        out[int(order[i])] = int(order[(i + 1) % count])
    return out


def set_tensor(net, name, tensor):
    *path, last = name.split(".")
    module = net
    for part in path:
        module = getattr(module, part)
    if last in module._parameters:
        module._parameters[last] = nn.Parameter(tensor, requires_grad=False)
    else:
        module._buffers[last] = tensor


def groups_after(description, name, groups, nodes):
    """How many groups a convolution or norm has: as before, where they are cut inside."""
    (part,) = description.dimensions[name][0] if len(description.dimensions[name][0]) == 1 else (None,)
    if part is None or part.get("group") not in nodes or part.get("repeat", 1) % groups == 0:
        return groups
    kept, extent = len(nodes[part["group"]]), description.extents[part["group"]]
    return groups * kept // extent


def heads_after(description, name, heads, nodes):
    """How many heads there are: fewer, where whole heads are cut."""
    part = description.dimensions[name][0][0]
    extent = description.extents.get(part.get("group"))
    if part.get("group") not in nodes or part.get("block", 1) == 1 or heads % extent != 0:
        return heads
    return heads // extent * len(nodes[part["group"]])


def attention(self, query, key, value, **_):
    """torch.nn.MultiheadAttention with the scale of the whole network and heads of any width."""
    n, steps, _ = query.shape
    layers = zip((query, key, value), self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3))
    parts = (nn.functional.linear(*layer) for layer in layers)
    q, k, v = (y.view(n, y.shape[1], self.num_heads, -1).transpose(1, 2) for y in parts)
    shares = (q @ k.transpose(-1, -2) * self.head_dim**-0.5).softmax(-1)
    y = (shares @ v).transpose(1, 2).reshape(n, steps, -1)
    return nn.functional.linear(y, self.out_proj.weight, self.out_proj.bias), None


def sub_network(net, description, nodes):
    made = copy.deepcopy(net)
    for name, tensor in net.state_dict().items():
        if name in description.dimensions:
            set_tensor(made, name, description.selected(name, tensor, nodes))
    for path, module in made.named_modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            module.groups = groups_after(description, path + ".weight", module.groups, nodes)
            turned = isinstance(module, nn.ConvTranspose2d)
            first, second = module.weight.shape[0], module.weight.shape[1] * module.groups
            module.in_channels, module.out_channels = (first, second) if turned else (second, first)
        elif isinstance(module, nn.GroupNorm):
            module.num_groups = groups_after(
                description, path + ".weight", module.num_groups, nodes
            )
            module.num_channels = module.weight.shape[0]
        elif isinstance(module, nn.LayerNorm):
            module.normalized_shape = tuple(module.weight.shape)
        elif isinstance(module, nn.RNNCellBase):
            module.input_size, module.hidden_size = module.weight_ih.shape[1], module.weight_hh.shape[1]
        elif isinstance(module, nn.RNNBase):
            module.input_size = module.weight_ih_l0.shape[1]
            module.hidden_size = module.weight_hh_l0.shape[1]
            module._flat_weights = [getattr(module, w) for w in module._flat_weights_names]
        elif isinstance(module, nn.MultiheadAttention):
            module.num_heads = heads_after(
                description, path + ".in_proj_weight", module.num_heads, nodes
            )
            module.forward = types.MethodType(attention, module)
        elif hasattr(module, "key_heads"):
            for heads, layer in (("heads", "q_proj"), ("key_heads", "k_proj")):
                layer = f"{path}.{layer}.weight".lstrip(".")
                setattr(module, heads, heads_after(description, layer, getattr(module, heads), nodes))
        elif isinstance(module, networks.Attention):
            module.heads = heads_after(description, path + ".q_proj.weight", module.heads, nodes)
        elif hasattr(module, "hidden_dim"):  # of a vision transformer
            module.hidden_dim = module.class_token.shape[-1]
    return made


def masked(net, description, nodes):
    """The whole network with all tensors at zero where a node is not held."""
    made = copy.deepcopy(net)
    state = made.state_dict()
    for name in description.dimensions:
        for r, parts in enumerate(description.dimensions[name]):
            at = 0
            for part in parts:
                count = description.elements(part)
                if part.get("group") in nodes:
                    held = torch.zeros(count, dtype=torch.bool)
                    held[description.index(part, nodes)] = True
                    lost = (~held).nonzero().flatten() + at
                    # A variance of zero would divide by it.
                    state[name].index_fill_(r, lost, 1.0 if name.endswith("running_var") else 0.0)
                at += count
    return made


class Failure(Exception):
    pass


def demand(holds, text):
    if not holds:
        raise Failure(text)


def prove(name, options):
    build = pathlib.Path(options.build)
    net, x = networks.make(name)
    file = build / f"{name}.onnx"
    written = pathlib.Path(networks.__file__).stat().st_mtime
    if not file.exists() or file.stat().st_mtime < written:  # of other networks
        networks.export(net, x, build / f"{name}.part")
        (build / f"{name}.part").rename(file)

    def tool(*words):
        return subprocess.run(
            [options.tool, "describe", str(file), *words], check=True, capture_output=True, text=True
        ).stdout

    start = time.time()
    text = tool("--emit", "text", "--products", options.products)
    took = time.time() - start
    derived = Description(tool("--emit", "json", "--products", options.products))
    computed_over = set()
    if "\ncomputed over" in text:
        for line in text.split("\ncomputed over")[1].splitlines()[1:]:
            if not line.startswith("  "):
                break
            computed_over.add(line.strip().split(": ")[0])

    net = randomise(net.double())
    state = net.state_dict()
    if x.is_floating_point():
        x = x.double()
    described = {n for n, t in state.items() if t.is_floating_point() and t.dim() > 0}
    demand(described == set(derived.dimensions), f"tensors: {described ^ set(derived.dimensions)}")
    for tensor in described:
        demand(derived.shape(tensor) == list(state[tensor].shape), f"the shape of {tensor}")
    demand(derived.cut, "nothing is cut")

    whole = output(net, x)
    demand(bool(torch.isfinite(whole).all()), "the outputs are not finite")
    tied = {g: derived.tensors_of(g) for g in derived.cut}
    orders = {g: other_order(derived.extents[g]) for g in derived.cut}
    tried = [orders] + [{g: orders[g]} for g in pick(derived.cut, options.groups)]
    for nodes in tried:
        moved = {n: derived.selected(n, state[n], nodes) for g in nodes for n in tied[g]}
        away = difference(whole, output_with(net, moved, x))
        demand(away < 1e-9, f"in another order of {sorted(nodes)[:3]} outputs move by {away:.1e}")
    # Each group does something: with one tensor as it was, the outputs are others.
    for group in pick(derived.cut, options.groups):
        away = 0.0
        for left_out in tied[group][:3] + tied[group][-3:]:
            nodes = {group: orders[group]}
            moved = {n: derived.selected(n, state[n], nodes) for n in tied[group] if n != left_out}
            away = max(away, difference(whole, output_with(net, moved, x)))
            if away > 1e-6:
                break
        demand(away > 1e-6, f"the outputs do not depend on the order of {group}")

    # Torchvision's windows of attention take the width of a head from that of the stream.
    fixed = {g for g in derived.cut if any(".qkv." in t for t in tied[g])}
    free = [g for g in derived.cut if g not in fixed]
    for share in (0.5, 0.3):
        nodes = {g: kept(derived.extents[g], share) for g in free}
        out = output(sub_network(net, derived, nodes), x)
        demand(out.shape == whole.shape, "the sub-network has other outputs")
        demand(bool(torch.isfinite(out).all()), "the sub-network is not finite")
        nodes = {g: n for g, n in nodes.items() if g not in computed_over}
        if nodes:
            cut = output(sub_network(net, derived, nodes), x)
            away = difference(cut, output(masked(net, derived, nodes), x))
            demand(away < 1e-9, f"cut to {share}, it is not the masked network: {away:.1e}")

    by_hand = ""
    whole_heads = ".whole_heads" if options.products == "outer" else ""
    hand = pathlib.Path(options.by_hand or ".") / f"{name}{whole_heads}.json"
    if options.by_hand and hand.exists():
        tool("--check", str(hand))
        mine = Description(hand.read_text())
        mine.dimensions = {t: d for t, d in mine.dimensions.items() if t in derived.dimensions}
        equal = mine.form() == derived.form()
        by_hand = ", as by hand" if equal else ", finer than by hand"
    in_groups = {n for g in derived.cut for n in tied[g]}
    part = sum(state[n].numel() for n in in_groups) / sum(state[n].numel() for n in described)
    print(
        f"{name}: right; {len(derived.cut)} groups on {part:.0%} of the elements, "
        f"derived in {took:.2f} s{by_hand}",
        flush=True,
    )


def pick(groups, most):
    step = max(1, len(groups) // most)
    return groups[::step]


def kept(extent, share):
    count = max(1, round(share * extent))
    return sorted(torch.randperm(extent)[:count].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--by-hand")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--groups", type=int, default=3, help="how many are tried alone")
    parser.add_argument("--products", default="largest")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    pathlib.Path(options.build).mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    names = options.names or [
        n for n, (_, _, often) in networks.NETWORKS.items() if often or options.all
    ]
    failed = 0
    for name in names:
        try:
            prove(name, options)
        except (Failure, subprocess.CalledProcessError) as wrong:
            failed += 1
            told = wrong.stderr if isinstance(wrong, subprocess.CalledProcessError) else ""
            print(f"{name}: WRONG: {wrong} {told}", flush=True)
    print(f"{len(names) - failed} networks right, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
