# SPDX-License-Identifier: MIT
"""How often each channel of ResNet-18's widest stage gets trained, under three schemes.

python3 coverage_picture.py [picture.png]
"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import subfed  # noqa: E402


def main(path="coverage.png", rounds=100):
    net = subfed.models.resnet18()
    cohort = subfed.CohortModel(clients=100, participation=0.1, mix="uniform", seed=1)
    schemes = {"rolling (FedRolex)": subfed.Rolling(), "random (Federated Dropout)": subfed.RandomSubset(),
               "prefix (HeteroFL)": subfed.Prefix()}
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, scheme in schemes.items():
        seen = subfed.Coverage(net)
        for round in range(rounds):
            for member in cohort.members(round):
                seen.record(subfed.draw(net, scheme, seed=1, round=round, client=member.client,
                                        capacity=member.capacity))
            seen.end_round()
        axes.plot(seen.counts("layer4"), label=name, linewidth=1)
        print(f"{name:28s}", seen.summary("layer4"))
    axes.set(xlabel="channel of layer4", ylabel=f"clients that trained it in {rounds} rounds", ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
