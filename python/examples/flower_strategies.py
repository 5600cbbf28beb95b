# SPDX-License-Identifier: MIT
"""FedRolex and HeteroFL as strategies of Flower, in its present form (messages).

    net = subfed.models.resnet18()                       # the description of the server's model
    strategy = FedRolex(net, capacity_of=lambda node: capacities[node], fraction_train=0.1)
    strategy.start(grid=grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=100)

A client trains the arrays that it is sent: its model has the shapes of these. This was tested against a
stand-in of Flower's interface (python/tests/flower_standin.py) and never run with Flower itself.
"""
from flwr.common import Array, ArrayRecord, Message, MessageType, RecordDict
from flwr.serverapp.strategy import FedAvg

import subfed

from partial_training import Parts


class PartialTraining(FedAvg):
    """FedAvg's choice of nodes; each is sent a part of the model, and the parts are averaged back."""

    def __init__(self, net, scheme, capacity_of, seed=0, **named):
        super().__init__(**named)
        self.parts = Parts(net, scheme, capacity_of, seed)

    def configure_train(self, server_round, arrays, config, grid):
        self.parts.begin({name: array.numpy() for name, array in arrays.items()})
        messages = []
        for chosen in super().configure_train(server_round, arrays, config, grid):
            node = chosen.metadata.dst_node_id
            part = self.parts.send(node, server_round)
            content = RecordDict({
                self.arrayrecord_key: ArrayRecord({name: Array(part[name]) for name in part}),
                self.configrecord_key: chosen.content[self.configrecord_key]})
            messages.append(Message(content=content, dst_node_id=node, message_type=MessageType.TRAIN))
        return messages

    def aggregate_train(self, server_round, replies):
        good = [reply for reply in replies if not reply.has_error()]
        if not good:
            return None, None
        server = self.parts.end([
            (reply.metadata.src_node_id,
             {name: array.numpy() for name, array in reply.content[self.arrayrecord_key].items()},
             float(next(iter(reply.content.metric_records.values()))[self.weighted_by_key]))
            for reply in good])
        return (ArrayRecord({name: Array(array) for name, array in server.items()}),
                self.train_metrics_aggr_fn([reply.content for reply in good], self.weighted_by_key))


class FedRolex(PartialTraining):
    def __init__(self, net, capacity_of, seed=0, **named):
        super().__init__(net, subfed.Rolling(), capacity_of, seed, **named)


class HeteroFL(PartialTraining):
    def __init__(self, net, capacity_of, seed=0, **named):
        super().__init__(net, subfed.Prefix(), capacity_of, seed, **named)
