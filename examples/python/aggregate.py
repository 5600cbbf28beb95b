# SPDX-License-Identifier: MIT
"""A strategy's aggregate over lists of numpy arrays, as in Flower, on subfed.

results: (arrays, client, capacity, number of examples) of each client of the round.
"""
import numpy as np

import subfed_example


WIDTHS = [4, 6, 2]
server = subfed_example.Server(WIDTHS)


def cut(parameters, server_round, client, capacity):
    """A client's arrays, to be trained in place."""
    return [np.asarray(t) for t in server.cut(parameters, server_round, client, capacity)]


def aggregate(parameters, results, server_round):
    """New parameters; results are only read, so arrays may come from a buffer, and may be halves."""
    averaged = [p.copy() for p in parameters]  # what nobody holds stays
    report = server.average(averaged, results, server_round)
    return averaged, report


def main():
    parameters = []
    for fan_in, fan_out in zip(WIDTHS, WIDTHS[1:]):
        parameters += [np.zeros((fan_out, fan_in), np.float32), np.zeros(fan_out, np.float32)]
    results = []
    for client, capacity in enumerate([1.0, 0.5]):
        arrays = cut(parameters, 1, client, capacity)
        for a in arrays:
            a += 1 + client  # training
        results.append((arrays, client, capacity, 10.0))
    averaged, report = aggregate(parameters, results, 1)
    print("a client of capacity 1/2 got", [a.shape for a in results[1][0]])
    print("fc1.bias", averaged[1].tolist())
    print("averaged", report["held"], "parameters,", report["unheld"], "held by nobody")
    try:
        aggregate(parameters, [([a[:1] for a in results[1][0]], 1, 0.5, 10.0)], 1)
    except RuntimeError as wrong:
        print("refused:", wrong)


if __name__ == "__main__":
    main()
