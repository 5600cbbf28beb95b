# SPDX-License-Identifier: MIT
"""As much of Flower's interface as the example strategies use, written from its documentation: not
Flower, and no proof that they run with it."""
import sys
import types

import numpy as np


class Array:
    def __init__(self, ndarray):
        self.data, self.dtype, self.shape = ndarray.tobytes(), ndarray.dtype, ndarray.shape

    def numpy(self):
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)  # what came over the wire


class ArrayRecord(dict):
    pass


class MetricRecord(dict):
    pass


class ConfigRecord(dict):
    pass


class RecordDict(dict):
    @property
    def metric_records(self):
        return {k: v for k, v in self.items() if isinstance(v, MetricRecord)}


class MessageType:
    TRAIN = "train"


class Message:
    def __init__(self, content=None, dst_node_id=0, message_type="", src_node_id=0, error=None):
        self.content, self.error = content, error
        self.metadata = types.SimpleNamespace(dst_node_id=dst_node_id, src_node_id=src_node_id,
                                              message_type=message_type)

    def has_error(self):
        return self.error is not None


class FedAvg:
    """The parts of both forms that the examples build on: who is chosen, and metrics."""

    def __init__(self, weighted_by_key="num-examples", fraction_train=1.0, accept_failures=True,
                 fit_metrics_aggregation_fn=None):
        self.weighted_by_key, self.fraction_train = weighted_by_key, fraction_train
        self.arrayrecord_key, self.configrecord_key = "arrays", "config"
        self.accept_failures = accept_failures
        self.fit_metrics_aggregation_fn = fit_metrics_aggregation_fn

    def train_metrics_aggr_fn(self, contents, key):
        records = [next(iter(c.metric_records.values())) for c in contents]
        total = sum(r[key] for r in records)
        return MetricRecord(loss=sum(r["loss"] * r[key] for r in records) / total)

    def configure_train(self, server_round, arrays, config, grid):
        config["server-round"] = server_round
        record = RecordDict(arrays=arrays, config=config)  # one record for all
        return [Message(record, node, MessageType.TRAIN) for node in grid.get_node_ids()]

    def configure_fit(self, server_round, parameters, client_manager):
        fit = FitIns(parameters, {"round": server_round})
        return [(client, fit) for client in client_manager.all().values()]


class FitIns:
    def __init__(self, parameters, config):
        self.parameters, self.config = parameters, config


class FitRes:
    def __init__(self, parameters, num_examples, metrics):
        self.parameters, self.num_examples, self.metrics = parameters, num_examples, metrics


def ndarrays_to_parameters(arrays):
    return [Array(a) for a in arrays]


def parameters_to_ndarrays(parameters):
    return [a.numpy() for a in parameters]


def install():
    """Puts the stand-in where `import flwr` looks."""
    names = {"flwr": {}, "flwr.common": {
        n: globals()[n] for n in ("Array", "ArrayRecord", "ConfigRecord", "FitIns", "FitRes", "Message",
                                  "MessageType", "MetricRecord", "RecordDict", "ndarrays_to_parameters",
                                  "parameters_to_ndarrays")},
             "flwr.serverapp": {}, "flwr.serverapp.strategy": {"FedAvg": FedAvg}, "flwr.server": {},
             "flwr.server.strategy": {"FedAvg": FedAvg}}
    for name, members in names.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        sys.modules[name] = module
