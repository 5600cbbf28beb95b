# SPDX-License-Identifier: MIT
"""What runs have given: a CSV file for each experiment, one with its curves, and for methods that
have keep probabilities one with how many there were in each bin."""
import csv
import io
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from description import Refusal
from spread import gini

_COLUMNS = ["hash", "setting", "method", "seed", "accuracy", "local", "worst", "capacities",
            "gini", "never", "rounds", "bytes_round", "flops_image", "seconds", "version",
            "command"]
_CURVE = ["hash", "round", "accuracy", "local", "bytes", "flops"]


@dataclass
class Point:
    round: int
    accuracy: float
    local: float
    bytes: int | None
    flops: int | None


@dataclass
class Row:
    cells: dict   # as in the file
    curve: list   # of Point
    keep: list = field(default_factory=list)  # of (round, {upper end of a bin: how many})

    @property
    def accuracy(self):
        """In percent."""
        return 100 * float(self.cells["accuracy"])

    @property
    def local(self):
        return 100 * float(self.cells["local"])

    @property
    def worst(self):
        return 100 * float(self.cells["worst"]) if self.cells["worst"] else None

    @property
    def gini(self):
        return float(self.cells["gini"])

    @property
    def seconds(self):
        """Of a processor; None where nobody has measured them."""
        return float(self.cells["seconds"]) if self.cells["seconds"] else None

    @property
    def capacities(self):
        """Accuracy in percent of the model of each capacity."""
        pairs = [p.split("=") for p in self.cells["capacities"].split()]
        return {c: 100 * float(a) for c, a in pairs}


def _table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _number(text):
    return int(text) if text else None


def _histogram(line):
    """A line of a file of keep probabilities: the round, and how many each bin has."""
    return int(line["round"]), {b: int(n) for b, n in line.items() if b != "round"}


class Results:
    """All rows of a folder, by the key of their run."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.rows, self.file_of = {}, {}
        for path in sorted(self.folder.glob("*.csv")):
            if path.stem.endswith(("-curves", "-keep")):
                continue
            curves, kept = {}, {}
            beside = path.with_name(path.stem + "-curves.csv")
            for point in _table(beside) if beside.exists() else []:
                curves.setdefault(point["hash"], []).append(
                    Point(int(point["round"]), float(point["accuracy"]), float(point["local"]),
                          _number(point["bytes"]), _number(point["flops"])))
            beside = path.with_name(path.stem + "-keep.csv")
            for line in _table(beside) if beside.exists() else []:
                kept.setdefault(line.pop("hash"), []).append(_histogram(line))
            for cells in _table(path):
                if set(cells) != set(_COLUMNS):
                    raise Refusal(f"{path} does not have the columns {', '.join(_COLUMNS)}.")
                self.rows[cells["hash"]] = Row(cells, curves.get(cells["hash"], []),
                                               kept.get(cells["hash"], []))
                self.file_of[cells["hash"]] = path.stem

    def of(self, place):
        return self.rows.get(place.run.key)

    def by_seed(self, experiment, setting, method, measure="accuracy"):
        """What is there of a cell: seed -> value."""
        out = {}
        for seed in setting.seeds:
            row = self.rows.get(experiment.run(setting, method, seed).key)
            value = getattr(row, measure) if row else None
            if value is not None:
                out[seed] = value
        return out

    def seconds_of_unit(self, owners):
        """Processor seconds for a unit of work, over all runs whose time was measured."""
        timed = [(r.seconds, owners[k].run.units) for k, r in self.rows.items()
                 if k in owners and r.seconds is not None]
        return sum(s for s, _ in timed) / sum(u for _, u in timed) if timed else None

    def add(self, place, cells, curve, keep=()):
        """A finished run, into the file of `place`'s experiment."""
        cells = {"hash": place.run.key, "setting": place.setting.name, "method": place.run.method,
                 "seed": str(place.run.seed), **cells,
                 "command": "scripts/demo " + shlex.join(place.run.words)}
        self.rows[place.run.key] = Row(cells, curve, list(keep))
        self.file_of[place.run.key] = place.experiment.name
        self._write(place.experiment.name)

    def _write(self, name):
        keys = sorted((k for k, f in self.file_of.items() if f == name),
                      key=lambda k: (self.rows[k].cells["setting"], self.rows[k].cells["method"],
                                     int(self.rows[k].cells["seed"])))
        whole, curves = io.StringIO(), io.StringIO()
        rows = csv.DictWriter(whole, _COLUMNS, lineterminator="\n")
        rows.writeheader()
        points = csv.writer(curves, lineterminator="\n")
        points.writerow(_CURVE)
        for key in keys:
            rows.writerow(self.rows[key].cells)
            for p in self.rows[key].curve:
                points.writerow([key, p.round, f"{p.accuracy:.4f}", f"{p.local:.4f}",
                                 "" if p.bytes is None else p.bytes,
                                 "" if p.flops is None else p.flops])
        beside = [(f"{name}-curves.csv", curves)]
        histograms = [(key, *h) for key in keys for h in self.rows[key].keep]
        if histograms:
            kept = io.StringIO()
            lines = csv.writer(kept, lineterminator="\n")
            lines.writerow(["hash", "round", *histograms[0][2]])
            lines.writerows([key, at, *counts.values()] for key, at, counts in histograms)
            beside.append((f"{name}-keep.csv", kept))
        self.folder.mkdir(parents=True, exist_ok=True)
        # What is beside the rows first: a row says that a run is done.
        for path, text in (*beside, (f"{name}.csv", whole)):
            part = self.folder / (path + ".part")
            part.write_text(text.getvalue(), encoding="utf-8")
            os.replace(part, self.folder / path)


def read_run(folder, run):
    """What the trainer has left in its folder: cells of a row, the curve, and keep probabilities."""
    folder = Path(folder)
    history = _table(folder / f"{run.method}.csv")
    wanted = run.option("rounds", None)
    if not history or (wanted and int(history[-1]["round"]) != int(wanted)):
        raise Refusal(f"{folder} has no result of its last round.")
    curve = [Point(int(e["round"]), float(e["accuracy"]), float(e["local_accuracy"]),
                   _number(e.get("bytes")), _number(e.get("flops"))) for e in history]
    costs = next(c for c in _table(folder / "costs.csv") if c["method"] == run.method)
    held = [int(n["held_by_all"]) for n in _table(folder / f"{run.method}-nodes.csv")]
    worst = capacities = ""
    clients = folder / f"{run.method}-clients.csv"
    if clients.exists():
        local = [c["local_accuracy"] for c in _table(clients) if c["local_accuracy"] != "nan"]
        worst = min(local, key=float) if local else ""
    parts = folder / f"{run.method}-capacities.csv"
    if parts.exists():
        capacities = " ".join(f"{c['capacity']}={float(c['accuracy']):.4f}" for c in _table(parts))
    cells = {"accuracy": f"{curve[-1].accuracy:.4f}", "local": f"{curve[-1].local:.4f}",
             "worst": worst, "capacities": capacities, "gini": f"{gini(held):.4f}",
             "never": f"{held.count(0) / len(held):.4f}", "rounds": str(curve[-1].round),
             "bytes_round": costs["bytes_per_round"], "flops_image": costs["client_flops"]}
    keep = folder / f"{run.method}-keep.csv"
    return cells, curve, [_histogram(line) for line in _table(keep)] if keep.exists() else []
