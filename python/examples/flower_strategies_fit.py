# SPDX-License-Identifier: MIT
"""FedRolex and HeteroFL as strategies of Flower, in its older form (configure_fit, aggregate_fit).

Parameters go in the order of the model's description. This was tested against a stand-in of Flower's
interface (python/tests/flower_standin.py) and never run with Flower itself.
"""
from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import FedAvg

import subfed

from partial_training import Parts


class PartialTraining(FedAvg):
    """FedAvg's choice of clients; each is sent a part of the model, and the parts are averaged back."""

    def __init__(self, net, scheme, capacity_of, seed=0, **named):
        super().__init__(**named)
        self.parts = Parts(net, scheme, capacity_of, seed)

    def configure_fit(self, server_round, parameters, client_manager):
        self.parts.begin(parameters_to_ndarrays(parameters))
        out = []
        for client, fit in super().configure_fit(server_round, parameters, client_manager):
            part = self.parts.send(int(client.cid), server_round)
            out.append((client, FitIns(ndarrays_to_parameters(part), fit.config)))
        return out

    def aggregate_fit(self, server_round, results, failures):
        if not results or (failures and not self.accept_failures):
            return None, {}
        server = self.parts.end([
            (int(client.cid), parameters_to_ndarrays(result.parameters), float(result.num_examples))
            for client, result in results])
        metrics = {}
        if self.fit_metrics_aggregation_fn:
            metrics = self.fit_metrics_aggregation_fn(
                [(result.num_examples, result.metrics) for _, result in results])
        return ndarrays_to_parameters(server), metrics


class FedRolex(PartialTraining):
    def __init__(self, net, capacity_of, seed=0, **named):
        super().__init__(net, subfed.Rolling(), capacity_of, seed, **named)


class HeteroFL(PartialTraining):
    def __init__(self, net, capacity_of, seed=0, **named):
        super().__init__(net, subfed.Prefix(), capacity_of, seed, **named)
