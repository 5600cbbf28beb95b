# SPDX-License-Identifier: MIT
"""docs/study.md from its template and the results: every figure in it comes from here.

Marks of the template, each between two @:
  table E            a table of the experiment E: means, deviations, numbers of seeds, papers
  tests E            its differences, paired by seed
  capacities E       accuracy of the model of each capacity
  costs E            bytes and multiply-adds of its runs
  reach E/A          what it costs, and after how many rounds, to reach an accuracy of A percent
  keep E/S/M         which share of the keep probabilities is in which bin, round by round
  picture P TITLE    a picture of pictures.py
  mean E/S/M         the mean of a cell, and so on: deviation, count, local
  capacity E/S/M/C   the mean of the model of the capacity C
  diff E/S/M~N       M minus N in the setting S, with its standard error
  across E/S~T/M     the setting S minus the setting T for the method M
  between A~B        A minus B by seed, each a series E/S/M, or E/S/M/C for the model of the
                     capacity C; the two may be of different experiments
  pairs A~B, C~D     a table of such differences
  paper E/S/M        what the papers have for M
  paper E/S/M~N      and for M minus N
  row E/S/M/N        the accuracy of the run of seed N
  command E/S/M/N    how to repeat it
  independent        the three schemes beside what independent.py has given
  repeated           how far runs that were made twice, by two versions of the trainer, differ
  locals E           a table as of `table`, of local accuracy
  progress, hours, runs, minute, missing, evenness
"""
import csv
import re
from fractions import Fraction
from pathlib import Path

from description import Refusal
import pictures
from spread import apart, correlation, deviation, mean, paired

_NAMES = {"fedrolex": "rolling", "heterofl": "static", "federated-dropout": "random"}
MEASURES = {"accuracy": "global", "local": "local", "worst": "worst client"}


def name_of(method):
    return _NAMES.get(method, method)


def number(value, digits=1):
    text = f"{value:.{digits}f}"
    return text[1:] if float(text) == 0 and text.startswith("-") else text


def signed(value, digits=1):
    text = number(value, digits)
    return text if text.startswith("-") or float(text) == 0 else "+" + text


def _rows(header, rows):
    out = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(out + ["| " + " | ".join(r) + " |" for r in rows])


class Document:
    def __init__(self, description, results):
        self.description, self.results = description, results

    # Cells.

    def values(self, experiment, setting, method, measure="accuracy"):
        return self.results.by_seed(experiment, setting, method, measure)

    def _rows_of(self, e, s, m):
        """The results of all seeds that are done."""
        found = [self.results.rows.get(e.run(s, m, seed).key) for seed in s.seeds]
        return [row for row in found if row]

    def cell(self, experiment, setting, method, measure="accuracy"):
        if method not in setting.methods:
            return ""
        got, wanted = self.values(experiment, setting, method, measure), len(setting.seeds)
        if not got:
            return "not run yet" if measure == "accuracy" else "-"
        count = str(len(got)) if len(got) == wanted else f"{len(got)} of {wanted}"
        return f"{self._with_spread(got.values())}, n {count}"

    @staticmethod
    def _with_spread(values):
        values = list(values)
        spread = deviation(values)
        return number(mean(values)) + (f" ({number(spread)})" if spread is not None else "")

    @staticmethod
    def _paper(experiment, setting, method):
        found = experiment.paper.get((setting.name, method))
        if not found:
            return ""
        accuracy, spread, _ = found
        # Two digits, as they are printed there.
        return f"{accuracy:.2f}" + (f" ({spread:.2f})" if spread else "")

    def _todo(self, experiment):
        """In words, where an experiment has no result of its own; else empty."""
        own = {k: p for k, p in self.description.owners().items() if p.experiment is experiment}
        if any(k in self.results.rows for k in own):
            return ""
        return f"Not run yet: \"{experiment.title}\" (`{experiment.name}`), {len(own)} runs."

    def table(self, name):
        e = self.description.experiment(name)
        if todo := self._todo(e):
            return todo
        measures = ["accuracy", "local"]
        if any(self.values(e, s, m, "worst") for s in e.settings for m in s.methods):
            measures.append("worst")
        if len(e.methods) > 1 and len(e.settings) > 1:  # settings x methods
            header = ["", *map(name_of, e.methods)]
            with_paper = [m for m in e.methods if any(p[1] == m for p in e.paper)]
            header += [f"paper: {name_of(m)}" for m in with_paper]
            rows = [[s.title, *(self.cell(e, s, m) for m in e.methods),
                     *(self._paper(e, s, m) for m in with_paper)] for s in e.settings]
        else:  # a list, with room for what else was measured
            header = ["", *(MEASURES[m] for m in measures)] + (["paper"] if e.paper else [])
            rows = []
            for s in e.settings:
                for m in s.methods:
                    title = s.title if len(e.methods) == 1 else name_of(m)
                    row = [title, *(self.cell(e, s, m, measure) for measure in measures)]
                    rows.append(row + ([self._paper(e, s, m)] if e.paper else []))
        where = sorted({p[2] for p in e.paper.values()})
        note = f"\n\nThe papers' numbers: {'; '.join(where)}." if where else ""
        return _rows(header, rows) + note

    def local(self, name):
        e = self.description.experiment(name)
        if self._todo(e):
            return ""
        return _rows(["", *map(name_of, e.methods)],
                     [[s.title, *(self.cell(e, s, m, "local") for m in e.methods)]
                      for s in e.settings])

    def _difference(self, first, second):
        found = paired(first, second)
        if found is None:
            return None
        if found.error is None:
            return [signed(found.mean), "-", "-", f"{found.above} of 1"]
        return [signed(found.mean), number(found.error),
                f"{signed(found.low)} to {signed(found.high)}", f"{found.above} of {found.count}"]

    def tests(self, name):
        e = self.description.experiment(name)
        if self._todo(e):
            return ""
        rows = []
        for s in e.settings:
            for a, b in e.against:
                if a in s.methods and b in s.methods:
                    found = self._difference(self.values(e, s, a), self.values(e, s, b))
                    if found:
                        rows.append([s.title, f"{name_of(a)} - {name_of(b)}", *found])
        for one, other in e.across:
            s, t = e.setting(one), e.setting(other)
            for m in s.methods:
                if m in t.methods:
                    found = self._difference(self.values(e, s, m), self.values(e, t, m))
                    if found:
                        rows.append([f"{s.title} - {t.title}", name_of(m), *found])
        if not rows:
            return "There are no pairs yet."
        return _rows(["", "", "difference", "standard error", "95 % interval", "above 0"], rows)

    def capacities(self, name):
        e = self.description.experiment(name)
        if self._todo(e):
            return ""
        rows = []
        for s in e.settings:
            for m in s.methods:
                found = {}
                for row in self._rows_of(e, s, m):
                    for capacity, accuracy in row.capacities.items():
                        found.setdefault(capacity, []).append(accuracy)
                if found:
                    rows.append((s.title, name_of(m), found))
        if not rows:
            return "No run of this experiment has reported it yet."
        known = sorted({c for r in rows for c in r[2]}, key=float, reverse=True)
        return _rows(["", "", *(f"model of {Fraction(c)}" for c in known), "n"],
                     [[title, m, *(self._with_spread(found[c]) if c in found else "" for c in known),
                       str(max(map(len, found.values())))] for title, m, found in rows])

    def capacity(self, path):
        """Mean accuracy of the model of a capacity."""
        found = self._series(path)[0]
        return number(mean(found.values())) if found else "(not run yet)"

    def _series(self, path):
        """Of E/S/M or E/S/M/C: accuracy by seed, the setting, and the words of a table."""
        path, *capacity = path.split("/", 3)[:3], *path.split("/", 3)[3:]
        e, s, m = self._at("/".join(path))
        if not capacity:
            return self.values(e, s, m), s, name_of(m)
        rows = {seed: self.results.rows.get(e.run(s, m, seed).key) for seed in s.seeds}
        known = {seed: row.capacities[capacity[0]] for seed, row in rows.items()
                 if row and capacity[0] in row.capacities}
        return known, s, f"{name_of(m)}'s model of {Fraction(capacity[0])}"

    def between(self, paths):
        first, second = (self._series(p)[0] for p in paths.split("~"))
        return self._in_words(first, second)

    def pairs(self, listed):
        rows = []
        for both in listed.split(","):
            (a, s, m), (b, t, n) = (self._series(p) for p in both.strip().split("~"))
            found = self._difference(a, b)
            if found:
                rows.append([s.title if s.title == t.title else f"{s.title} - {t.title}",
                             m if m == n else f"{m} - {n}", *found])
        if not rows:
            return "There are no pairs yet."
        return _rows(["", "", "difference", "standard error", "95 % interval", "above 0"], rows)

    def costs(self, name):
        e = self.description.experiment(name)
        if self._todo(e):
            return ""
        rows = []
        for s in e.settings:
            for m in s.methods:
                if found := self._rows_of(e, s, m):
                    rows.append([s.title, name_of(m),
                                 number(mean([float(r.cells["bytes_round"]) for r in found]) / 1e6, 3),
                                 number(mean([float(r.cells["flops_image"]) for r in found]) / 1e6, 3),
                                 number(mean([r.accuracy for r in found]))])
        if not rows:
            return "There are no results yet."
        return _rows(["", "", "MB of a round", "MFLOPs of an image", "accuracy, %"], rows)

    @staticmethod
    def _reached(row, target):
        """Rounds, bytes and multiply-adds until `target` percent, between two evaluations along a
        line, and whether the first evaluation had it already; None where none has it."""
        before = None
        for p in row.curve:
            now = (p.round, p.bytes, p.flops)
            if 100 * p.accuracy < target:
                before = p
                continue
            if before is None:
                return now, True
            part = (target / 100 - before.accuracy) / (p.accuracy - before.accuracy)
            since = (before.round, before.bytes, before.flops)
            return tuple(a + part * (b - a) for a, b in zip(since, now)), False
        return None

    def reach(self, path):
        """[FedDrop, Fig. 5]; on the frontier is who is not beaten in both costs by one row."""
        name, target = path.split("/")
        e = self.description.experiment(name)
        lines = []  # title, method, seeds, all of them, means of the three costs, at most?
        for s in e.settings:
            for m in s.methods:
                rows = self._rows_of(e, s, m)
                found = [f for r in rows if (f := self._reached(r, float(target)))]
                if rows:
                    lines.append((s.title, m, len(found), len(rows),
                                  [mean(c) for c in zip(*(f[0] for f in found))],
                                  any(f[1] for f in found)))
        if not lines:
            return "There are no results yet."
        whole = [costs for _, _, count, all_of, costs, _ in lines if count == all_of]
        out = []
        for title, m, count, all_of, costs, at_most in lines:
            cells = ["-", "-", "-", ""]
            if count:
                most = "at most " if at_most else ""
                best = count == all_of and not any(
                    c[1] <= costs[1] and c[2] <= costs[2] and c != costs for c in whole)
                cells = [most + number(costs[0]), most + number(costs[1] / 1e6, 0),
                         most + number(costs[2] / 1e9, 0), "yes" if best else ""]
            out.append([title, name_of(m), f"{count} of {all_of}", *cells])
        return _rows(["", "", "seeds that reach it", "rounds", "MB", "GFLOPs", "on the frontier"],
                     out)

    def keep(self, path):
        """Percent of all keep probabilities of all clients, the mean over the seeds."""
        by_round, seeds = {}, set()
        e, s, m = self._at(path)
        for seed in s.seeds:
            row = self.results.rows.get(e.run(s, m, seed).key)
            for at, counts in row.keep if row else []:
                seeds.add(seed)
                for b, n in counts.items():
                    share = 100 * n / sum(counts.values())
                    by_round.setdefault(at, {}).setdefault(b, []).append(share)
        if not seeds:
            return "No run of this has reported it yet."
        bins = list(next(iter(by_round.values())))
        used = [i for i, b in enumerate(bins) if any(mean(r[b]) for r in by_round.values())]
        shown = bins[used[0]:used[-1] + 1]
        titles = [f"{bins[i - 1] if i else '0'} to {b}"
                  for i, b in enumerate(bins) if b in shown]
        return _rows(["round", *titles], [[str(at), *(number(mean(r[b])) for b in shown)]
                                          for at, r in sorted(by_round.items())])

    # Figures in sentences.

    def _at(self, path):
        name, setting, method = path.split("/")
        e = self.description.experiment(name)
        return e, e.setting(setting), method

    def figure(self, kind, path):
        e, s, m = self._at(path)
        values = list(self.values(e, s, m, "local" if kind == "local" else "accuracy").values())
        if kind == "count":
            return str(len(values))
        if not values:
            return "(not run yet)"
        if kind == "deviation":
            spread = deviation(values)
            return "-" if spread is None else number(spread)
        return number(mean(values))

    @staticmethod
    def _in_words(first, second):
        found = paired(first, second)
        if found is None:
            return "(not run yet)"
        if found.error is None:
            return f"{signed(found.mean)} (one seed)"
        return f"{signed(found.mean)} (standard error {number(found.error)}, n {found.count})"

    def diff(self, path):
        name, setting, methods = path.split("/")
        e = self.description.experiment(name)
        s = e.setting(setting)
        a, b = methods.split("~")
        return self._in_words(self.values(e, s, a), self.values(e, s, b))

    def across(self, path):
        name, settings, method = path.split("/")
        e = self.description.experiment(name)
        a, b = (e.setting(x) for x in settings.split("~"))
        return self._in_words(self.values(e, a, method), self.values(e, b, method))

    def paper(self, path):
        """What the papers have for a method, or for one minus another."""
        name, setting, methods = path.split("/")
        e = self.description.experiment(name)
        found = [e.paper.get((setting, m)) for m in methods.split("~")]
        if None in found:
            raise Refusal(f"The papers have no {path}.")
        if len(found) == 1:
            return f"{found[0][0]:.2f}"
        return signed(found[0][0] - found[1][0], 2)

    def _result_of(self, path):
        for place in self.description.places():
            if place.name == path:
                return self.results.of(place)
        raise Refusal(f"There is no run {path}.")

    def row(self, path):
        row = self._result_of(path)
        return number(row.accuracy, 2) if row else "(not run yet)"

    def command(self, path):
        row = self._result_of(path)
        if row is None:
            return "    (not run yet)"
        words, lines = row.cells["command"].split(" --"), []
        for word in words:
            word = word if not lines else "--" + word
            if lines and len(lines[-1]) + len(word) < 88:
                lines[-1] += " " + word
            else:
                lines.append(word)
        return " \\\n".join(("    " if i == 0 else "      ") + line for i, line in enumerate(lines))

    # The whole.

    def _seconds_of_unit(self):
        return self.results.seconds_of_unit(self.description.owners())

    def progress(self):
        rate, rows = self._seconds_of_unit(), []
        for e in self.description.experiments:
            places = {p.run.key: p for p in self.description.places() if p.experiment is e}
            todo = [p for k, p in places.items() if k not in self.results.rows]
            left = "-"
            if todo and rate:
                hours = sum(p.run.units for p in todo) * rate / 3600
                left = "less than 0.1" if hours < 0.05 else number(hours)
            rows.append([f"`{e.name}`", e.title, e.repeats, f"{len(places) - len(todo)} of "
                         f"{len(places)}", left])
        return _rows(["name", "experiment", "repeats", "runs done", "processor hours left"], rows)

    def hours(self):
        return number(sum(r.seconds or 0 for r in self.results.rows.values()) / 3600)

    def runs(self):
        return str(len(self.results.rows))

    def minute(self):
        """Processor seconds of a run of the base."""
        found = [r.seconds for k, r in self.results.rows.items()
                 if self.results.file_of[k] == "order" and r.seconds is not None]
        return number(mean(found), 0) if found else "(not run yet)"

    def missing(self):
        todo = {k: p for k, p in self.description.owners().items() if k not in self.results.rows}
        rate = self._seconds_of_unit()
        if not todo:
            return "Nothing is missing."
        hours = "an unknown number of" if rate is None else number(
            sum(p.run.units for p in todo.values()) * rate / 3600)
        return (f"{len(todo)} of {len(self.description.owners())} runs are not done yet; they take\n"
                f"about {hours} processor hours.")

    def evenness(self):
        """Correlations of evenness and accuracy, over all runs and within their groups."""
        points = pictures.evenness_points(self.description, self.results)
        if len(points) < 3:
            return "There are too few runs yet."
        x, y = [p.gini for p in points], [p.accuracy for p in points]
        whole = correlation(x, y)
        within = correlation([p.gini_apart for p in points], [p.accuracy_apart for p in points])
        rows = [["as they are", number(whole, 2) if whole is not None else "-"],
                ["minus the means of their setting and seed",
                 number(within, 2) if within is not None else "-"]]
        for name, title in (("order/L2", "of these, uniform capacities, 2 labels"),
                            ("order/L5", "uniform capacities, 5 labels"),
                            ("no-large/L2", "none of capacity 1, 2 labels"),
                            ("no-large/L5", "none of capacity 1, 5 labels")):
            chosen = [p for p in points if p.where == name]
            found = correlation([p.gini_apart for p in chosen],
                                [p.accuracy_apart for p in chosen]) if len(chosen) > 2 else None
            rows.append([title, number(found, 2) if found is not None else "-"])
        return (f"{len(points)} runs of rolling, static and random sets:\n\n" +
                _rows(["runs", "correlation of unevenness and accuracy"], rows))

    def independent(self):
        """The cells of `order`, and those of independent.csv, which has other random numbers."""
        theirs = {}
        with open(Path(__file__).with_name("independent.csv"), encoding="utf-8", newline="") as file:
            for r in csv.DictReader(file):
                theirs.setdefault((r["labels"], r["scheme"]), []).append(float(r["accuracy"]))
        order = next((e for e in self.description.experiments if e.name == "order"), None)
        if order is None:
            raise Refusal("There is no experiment `order` to compare independent.csv with.")
        rows = []
        for (labels, scheme), values in sorted(theirs.items()):
            setting = next(s for s in order.settings if s.name == f"L{labels}")
            method = next(m for m, n in _NAMES.items() if n == scheme)
            own = self.values(order, setting, method)
            found = apart(list(own.values()), values)
            rows.append([f"{labels} labels, {scheme}", self.cell(order, setting, method),
                         f"{self._with_spread(values)}, n {len(values)}",
                         *([signed(found.mean), number(found.error),
                            f"{signed(found.low)} to {signed(found.high)}"] if found else ["-"] * 3)])
        return _rows(["", "trainer", "independent program", "difference", "standard error",
                      "95 % interval"], rows)

    def repeated(self):
        """Runs that two versions of the trainer have made: those of repeated.csv, which the rows
        have replaced."""
        with open(Path(__file__).with_name("repeated.csv"), encoding="utf-8", newline="") as file:
            pairs = [(100 * float(r["accuracy"]), self.results.rows[r["hash"]].accuracy)
                     for r in csv.DictReader(file) if r["hash"] in self.results.rows]
        if not pairs:
            return "No run was made twice."
        apart_by = [abs(a - b) for a, b in pairs]
        return (f"{len(pairs)} runs were made by two versions: they differ by "
                f"{number(mean(apart_by), 2)} points\nin the mean, and by {number(max(apart_by), 2)} "
                f"at most; {apart_by.count(0)} are equal. The mean of the differences is "
                f"{signed(mean([b - a for a, b in pairs]), 2)}.")

    def picture(self, words):
        name, _, title = words.partition(" ")
        if not pictures.script(name, self.description, self.results):
            return ""
        return f"![{title}](images/study-{name}.svg)"

    def filled(self, template):
        plain = {"progress": self.progress, "hours": self.hours, "runs": self.runs,
                 "minute": self.minute, "missing": self.missing, "evenness": self.evenness,
                 "independent": self.independent, "repeated": self.repeated}
        taking = {"table": self.table, "tests": self.tests, "capacities": self.capacities,
                  "costs": self.costs, "reach": self.reach, "keep": self.keep, "picture": self.picture, "diff": self.diff,
                  "across": self.across, "paper": self.paper, "command": self.command, "row": self.row,
                  "capacity": self.capacity, "locals": self.local, "between": self.between,
                  "pairs": self.pairs,
                  **{kind: (lambda path, kind=kind: self.figure(kind, path))
                     for kind in ("mean", "deviation", "count", "local")}}

        def replaced(found):
            word, rest = (found[1].split(maxsplit=1) + ["", ""])[:2]
            if word in plain and not rest:
                return plain[word]()
            if word in taking and rest:
                return taking[word](" ".join(rest.split()))
            raise Refusal(f"The template has @{found[1]}@, which means nothing.")
        return re.sub(r"\n{3,}", "\n\n", re.sub(r"@([^@]+)@", replaced, template))


def write(description, results, template, document):
    """The document, and its pictures beside it where gnuplot is installed."""
    template, document = Path(template), Path(document)
    marked = template.read_text(encoding="utf-8")
    document.write_text(Document(description, results).filled(marked), encoding="utf-8")
    names = re.findall(r"@picture ([^ @]+)", marked)
    pictures.draw(names, description, results, document.parent / "images")
