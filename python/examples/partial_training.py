# SPDX-License-Identifier: MIT
"""What the strategies of both forms of Flower share: who is sent which part, and averaging it back."""
import numpy as np

import subfed


class Parts:
    """The parts of one round. net: the model's description; capacity_of: from a client's number."""

    def __init__(self, net, scheme, capacity_of, seed=0):
        self.net, self.scheme, self.capacity_of, self.seed = net, scheme, capacity_of, seed
        self.server, self.sent, self.coverage = None, {}, subfed.Coverage(net)

    def begin(self, server):
        """server: arrays by name, or in the model's order. They are copied, to be written later."""
        if isinstance(server, dict):
            self.server = {name: np.array(array) for name, array in server.items()}
        else:
            self.server = [np.array(array) for array in server]
        self.sent = {}

    def send(self, client, server_round):
        """A client's arrays. Its number may be any of 64 bits, as Flower's node ids are."""
        sub = subfed.draw(self.net, self.scheme, seed=self.seed, round=server_round, client=client,
                          capacity=self.capacity_of(client))
        self.sent[client] = sub
        return subfed.slice(self.server, sub)

    def end(self, replies):
        """replies: (client, arrays, weight). A client that was sent nothing this round is refused, and
        so are arrays of another shape than they were sent in: nothing is spread or cut to fit."""
        updates = []
        for client, arrays, weight in replies:
            if client not in self.sent:
                raise subfed.Error(f"client {client} replies, but was sent nothing in this round")
            updates.append((self.sent[client], arrays, weight))
            self.coverage.record(self.sent[client])
        subfed.average_cohort(self.net, updates, self.server)
        self.coverage.end_round()
        return self.server
