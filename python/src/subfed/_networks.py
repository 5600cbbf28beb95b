# SPDX-License-Identifier: MIT
"""Networks of torch as functions of their tensors, and descriptions of them."""
import copy
import warnings

from ._ext import Error, Model, check_description, derive_widths


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


def describe(*networks, inputs=None, copies=()):
    """The description of a torch module, derived from it and from the same network in other widths.

        net = subfed.describe(Network(64), Network(32), inputs=[torch.randn(2, 3, 32, 32)])

    networks: the module to describe, and one narrower or more, all of their widths scaled.
    inputs: for which the description is proven, as check_description does; without them what the shapes
    could not say becomes warnings.
    copies: (tensor, dimension, times) of dimensions of copies of their nodes: gates, q / k / v.

    Widths that are equal or scale alike are one group. Buffers are statistics, integer ones counters.
    """
    if len(networks) < 2:
        raise Error(f"subfed: describe: {len(networks)} networks are given, expected one and the same in "
                    "another width at least; subfed.models and the layer helpers of Model describe a "
                    "network of one width")
    net, doubts = _from_widths(networks, copies)
    if inputs is not None:
        check_description(net, forward_of(networks[0], *inputs))
    else:
        for doubt in doubts:
            warnings.warn(f"subfed: describe: {doubt}", stacklevel=2)
    return net
