# SPDX-License-Identifier: MIT
"""Networks of torch as functions of their tensors, and descriptions of them."""
import copy
import io
import warnings

from ._ext import Error, Model, check_description, derive_model, derive_widths


def forward_of(module, *inputs):
    """A torch module as the function that prove_description asks for: its outputs for `inputs`.

    A copy of the module computes in float64 and in evaluation mode. It takes the tensors of sub-networks
    too, unless the module itself compares shapes.
    """
    import torch

    module = copy.deepcopy(module).double().eval()
    inputs = [x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
    own = module.state_dict(keep_vars=True)

    def forward(tensors):  # of tied weights, which are one tensor, a description has one name
        with torch.no_grad():
            for name, values in tensors.items():
                own[name].data = torch.from_numpy(values).to(own[name].dtype)
            return module(*inputs)

    return forward


def _from_widths(networks, copies):
    net, doubts = derive_widths(networks, copies)
    if hasattr(networks[0], "named_buffers"):
        for name, buffer in networks[0].named_buffers():
            if name in {t.name for t in net.tensors}:
                net.mark(name, "statistic" if buffer.is_floating_point() else "counter")
    return net, doubts


def _from_graph(module, inputs):
    """From the operators of a module, as the ONNX exporter sees them. In the order of the state_dict, with the
    integers that the exporter leaves out; tied weights are there once."""
    import torch

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about values, of which nothing is asked
        torch.onnx.export(copy.deepcopy(module), tuple(inputs), file, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING)
    derived, doubts, _ = derive_model(file.getvalue())
    found = {t.name: t for t in derived.tensors}
    net = Model()
    for group in derived.groups:
        net.group(group.name, group.extent, cut=group.cut)
    state, seen = module.state_dict(keep_vars=True), set()
    described = {id(state[name]) for name in found if name in state}
    for name, tensor in state.items():
        if name in found:
            net.tensor(name, found[name].dimensions, role=found[name].role)
        elif id(tensor) not in described | seen:
            role = "parameter" if isinstance(tensor, torch.nn.Parameter) else (
                "statistic" if tensor.is_floating_point() else "counter")
            net.tensor(name, list(tensor.shape), role=role)
            if tensor.is_floating_point():
                doubts.append(f"no operator reads '{name}'")
        seen.add(id(tensor))
    foreign = sorted(set(found) - set(state))
    if foreign:
        raise Error(f"subfed: describe: the exporter made a tensor '{foreign[0]}' of its own: describe the network "
                    "by hand, or by two widths")
    return net, doubts


def describe(*networks, inputs=None, copies=()):
    """The description of a torch module, derived from its operators, or from itself in other widths.

        net = subfed.describe(module, inputs=[torch.randn(1, 3, 64, 64)])
        net = subfed.describe(Network(64), Network(32), inputs=[torch.randn(2, 3, 32, 32)])

    One network: its operators are followed, as torch's ONNX exporter sees them for the inputs. What is not
    understood is not cut, and named in a warning. check_description proves the result.

    Two or more: the module to describe, and narrower ones, all of their widths scaled. Widths that are equal
    or scale alike are one group. With inputs the description is proven, as check_description does; without
    them what the shapes could not say becomes warnings.

    copies: (tensor, dimension, times) of dimensions of copies of their nodes, for two widths: gates, q / k / v.

    Buffers are statistics, integer ones counters.
    """
    if len(networks) == 1 and inputs is not None:
        net, doubts = _from_graph(networks[0], inputs)
    elif len(networks) > 1:
        net, doubts = _from_widths(networks, copies)
        if inputs is not None:
            check_description(net, forward_of(networks[0], *inputs))
            doubts = []
    else:
        raise Error(f"subfed: describe: {len(networks)} networks are given without inputs, expected one and inputs "
                    "for it, or the same one in two widths")
    for doubt in doubts:
        warnings.warn(f"subfed: describe: {doubt}", stacklevel=2)
    return net
