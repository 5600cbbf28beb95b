# SPDX-License-Identifier: MIT
"""Primitives of partial-training federated learning: which nodes of a large model a client holds,
cutting them out of the server's tensors, and averaging them back over just the clients that hold
them.

    net = subfed.Model()
    hidden = net.group("hidden", 64)
    net.linear("fc1", 20, hidden)
    net.linear("fc2", hidden, 10)

    updates = []
    for client, capacity in cohort:
        sub = subfed.draw(net, subfed.Rolling(), seed=7, round=r, client=client, capacity=capacity)
        tensors = subfed.slice(server, sub)        # server: a state_dict, or a dict of numpy arrays
        train(tensors)
        updates.append((sub, tensors))
    subfed.average_cohort(net, updates, server)    # in place
"""
import sys

from . import _ext
from . import models
from . import _notebook
from ._ext import theory
from ._ext import (
    AverageReport, Binding, BrokenGroup, Capacity, CoarseTie, CohortMember, CohortModel, Coverage,
    CoverageByClass, CoverageSummary, DescriptionProof, Dimension, Doubt,
    DrawRequest, Error, Group, GroupId, HeldElements, HolderSummary, IndexSet, KeepProbabilities,
    Layer, Model, NodeScores, OrderedDropout, ParameterCoverage, Prefix, RandomSubset, Rolling,
    SeedPolicy, SelectiveAverage, ServerAdagrad, ServerAdam, ServerSGD, ServerYogi, SimpleEnsemble,
    Submodel, SyncDropout, Tensor, TensorId, TopK, UpdateOutcome, WidthDistribution, Workload, average_cohort,
    bindings_of, check_description, concat, cut_difference, cut_differences, derive_model, derive_widths, draw,
    find_coarse_ties, find_doubts, flatten, keep_scale, local_model, node_norms, parameters,
    permuted, prove_description, random_values, scatter, scatter_add, shared_nodes,
    shared_parameters, slice, traffic, within)
from ._networks import describe, forward_of

__version__ = _ext.__version__
sys.modules["subfed.theory"] = theory

__all__ = [
    "AverageReport", "Binding", "BrokenGroup", "Capacity", "CoarseTie", "CohortMember",
    "CohortModel", "Coverage", "CoverageByClass", "CoverageSummary", "DescriptionProof",
    "Dimension", "Doubt", "DrawRequest", "Error", "Group", "GroupId",
    "HeldElements", "HolderSummary", "IndexSet", "KeepProbabilities", "Layer", "Model",
    "NodeScores", "OrderedDropout", "ParameterCoverage", "Prefix", "RandomSubset", "Rolling",
    "SeedPolicy", "SelectiveAverage", "ServerAdagrad", "ServerAdam", "ServerSGD", "ServerYogi",
    "SimpleEnsemble", "Submodel", "SyncDropout", "Tensor", "TensorId", "TopK", "UpdateOutcome", "WidthDistribution",
    "Workload", "average_cohort", "bindings_of", "check_description", "concat", "cut_difference",
    "cut_differences", "derive_model", "derive_widths", "describe", "draw", "find_coarse_ties", "find_doubts",
    "flatten", "forward_of", "keep_scale", "local_model", "models", "node_norms", "parameters",
    "permuted", "prove_description", "random_values", "scatter", "scatter_add", "shared_nodes",
    "shared_parameters", "slice", "theory", "traffic", "within"]

# Users know these by the package, and so do pickles and messages.
for _from in (_ext, theory):
    for _object in vars(_from).values():
        if isinstance(_object, type) and _object.__module__.startswith("subfed._ext"):
            _object.__module__ = _object.__module__.replace("subfed._ext", "subfed")
del _from, _object

_notebook.add_to(Model, Submodel, Coverage)
