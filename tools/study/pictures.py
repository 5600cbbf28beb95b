# SPDX-License-Identifier: MIT
"""The pictures of docs/study.md, drawn by gnuplot."""
import shutil
import subprocess
import sys
from dataclasses import dataclass

from description import Refusal
from spread import deviation, mean, paired

# The trainer's colours: examples/common/output.hpp.
_COLOURS = {"fedrolex": "#0072B2", "heterofl": "#D55E00", "federated-dropout": "#009E73",
            "feddrop": "#CC79A7", "ensemble": "#56B4E9", "unidrop": "#E69F00",
            "fedavg": "#222222", "fedavg-smallest": "#999999"}
_NAMES = {"fedrolex": "rolling", "heterofl": "static", "federated-dropout": "random"}
_THREE = ("fedrolex", "heterofl", "federated-dropout")


@dataclass
class Evenness:
    where: str            # experiment/setting
    method: str
    gini: float
    accuracy: float
    gini_apart: float     # minus the means of the methods of the same setting and seed
    accuracy_apart: float


def evenness_points(description, results):
    """Runs of the three schemes, each once, in settings and seeds that all three have."""
    groups, seen = {}, set()
    for place in description.places():
        row = results.of(place)
        if row is None or place.run.method not in _THREE or place.run.key in seen:
            continue
        if place.run.reads_text:  # its accuracies are of another kind
            continue
        seen.add(place.run.key)
        where = f"{place.experiment.name}/{place.setting.name}"
        groups.setdefault((where, place.run.seed), {})[place.run.method] = row
    out = []
    for (where, _), rows in groups.items():
        if len(rows) < 3:
            continue
        even, right = mean([r.gini for r in rows.values()]), mean(
            [r.accuracy for r in rows.values()])
        out += [Evenness(where, m, r.gini, r.accuracy, r.gini - even, r.accuracy - right)
                for m, r in rows.items()]
    return out


def _head(width, height, title):
    return (f"set terminal svg size {width},{height} font 'Helvetica,14' background '#ffffff'\n"
            f"set border 3 linecolor rgb '#666666'\nset tics nomirror out\n"
            f"set grid ytics linecolor rgb '#dddddd'\nset key noenhanced\n" +
            (f"set title {_quoted(title)} noenhanced\n" if title else ""))


def _block(name, lines):
    return f"${name} << END\n" + "".join(line + "\n" for line in lines) + "END\n"


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _name(method):
    return _NAMES.get(method, method)


def _cells(description, results, name, methods):
    """Of an experiment: method -> a list of (setting's number, mean, deviation)."""
    e, out = description.experiment(name), {}
    for method in methods:
        for i, s in enumerate(e.settings):
            values = list(results.by_seed(e, s, method).values())
            if values:
                out.setdefault(method, []).append((i, mean(values), deviation(values) or 0))
    return e, out


def _bars(e, cells, title, label, height=420):
    """Means with their deviations, methods beside each other."""
    script = _head(900, height, title)
    plots, count = [], len(cells)
    for k, (method, points) in enumerate(cells.items()):
        shift = (k - (count - 1) / 2) * 0.12
        script += _block(f"m{k}", [f"{i + shift:.3f} {a:.3f} {d:.3f}" for i, a, d in points])
        colour = _COLOURS.get(method, "#222222")
        plots.append(f"$m{k} using 1:2:3 with yerrorbars linewidth 2 pointtype 7 pointsize 0.9 "
                     f"linecolor rgb '{colour}' title '{_name(method)}'")
        if label:
            plots.append(f"$m{k} using 1:2 with lines linewidth 1.5 linecolor rgb '{colour}' "
                         "notitle")
    tics = ", ".join(f'"{s.title}" {i}' for i, s in enumerate(e.settings))
    return (script + f"set xtics ({tics}) noenhanced\nset xrange [-0.5:{len(e.settings) - 0.5}]\n"
            + (f"set xlabel {_quoted(label)} noenhanced\n" if label else "") +
            "set ylabel 'accuracy, %'\nset key outside right top\nplot " +
            ", \\\n ".join(plots) + "\n")


def _runs(tics, series):
    """A point a run with the mean as a line; series is a list of (name, colour, [(tic, value)..])."""
    script, plots = _head(900, 420, "Each point is a run, the line their mean"), []
    for k, (name, colour, points) in enumerate(series):
        shift = (k - (len(series) - 1) / 2) * 0.2
        script += _block(f"m{k}", [f"{i + shift:.3f} {v:.3f}" for i, v in points])
        middle = [(i, mean([v for j, v in points if j == i])) for i in sorted({i for i, _ in points})]
        script += _block(f"c{k}", [f"{i + shift:.3f} {v:.3f} 0.07" for i, v in middle])
        plots.append(f"$m{k} using 1:2 with points pointtype 7 pointsize 0.6 linecolor rgb "
                     f"'{colour}' title '{name}'")
        plots.append(f"$c{k} using 1:2:3 with xerrorbars pointtype 0 linewidth 2.5 linecolor rgb "
                     f"'{colour}' notitle")
    named = ", ".join(f'"{t}" {i}' for i, t in enumerate(tics))
    return (script + f"set errorbars 0\nset bmargin 4\nset xtics ({named})\n"
            f"set xrange [-0.5:{len(tics) - 0.5}]\n"
            "set ylabel 'accuracy, %'\nset key outside right top\nplot " + ", \\\n ".join(plots) +
            "\n")


def _at(description, results, places, method):
    """The runs of a method in (experiment, setting) after another, as (place's number, value)."""
    points = []
    for i, (name, setting) in enumerate(places):
        e = description.experiment(name)
        points += [(i, v) for v in results.by_seed(e, e.setting(setting), method).values()]
    return points


def _order(description, results):
    """The three schemes over settings of several experiments."""
    where = [("order", "L2"), ("order", "L5"), ("no-large", "L2"), ("no-large", "L5")]
    series = [(_name(m), _COLOURS[m], _at(description, results, where, m)) for m in _THREE]
    series = [s for s in series if s[2]]
    titles = ["2 labels", "5 labels", r"2 labels, none\nof capacity 1",
              r"5 labels, none\nof capacity 1"]
    return _runs(titles, series) if series else ""


def _phases(description, results):
    """Windows that start alike and apart, with random sets beside them."""
    starts = [("", "rolling, as in Eq. 4", "#999999"),
              ("-client", "rolling, clients apart", _COLOURS["fedrolex"]),
              ("-layer", "rolling, layers apart", "#7b4fa3")]
    places = ["g16", "g8", "none-large", "mixed"]
    series = [(name, colour, _at(description, results, [("phases", p + end) for p in places],
                                 "fedrolex")) for end, name, colour in starts]
    random = [("larger-server", "g16"), ("larger-server", "g8"), ("no-large", "L5"), ("order", "L5")]
    series.append(("random", _COLOURS["federated-dropout"],
                   _at(description, results, random, "federated-dropout")))
    series = [s for s in series if s[2]]
    titles = ["all of 1/16", "all of 1/8", "1/2 to 1/16", "1 to 1/16"]
    return _runs(titles, series) if series else ""


def _evenness(description, results):
    points = evenness_points(description, results)
    if len(points) < 3:
        return ""
    script, left, right = _head(1100, 460, ""), [], []
    for k, method in enumerate(_THREE):
        own = [p for p in points if p.method == method]
        script += _block(f"m{k}", [f"{p.gini:.4f} {p.accuracy:.3f} {p.gini_apart:.4f} "
                                   f"{p.accuracy_apart:.3f}" for p in own])
        look = (f"with points pointtype 7 pointsize 0.6 linecolor rgb '{_COLOURS[method]}' "
                f"title '{_name(method)}'")
        left.append(f"$m{k} using 1:2 {look}")
        right.append(f"$m{k} using 3:4 {look}")
    return (script + "set multiplot layout 1,2\nset key top right\n"
            "set xlabel 'Gini coefficient of how often nodes were held'\n"
            "set ylabel 'accuracy, %'\nplot " + ", \\\n ".join(left) + "\n"
            "set xlabel 'the same, minus its mean over the three schemes'\n"
            "set ylabel 'accuracy minus its mean over the three schemes'\nplot " +
            ", \\\n ".join(right) + "\nunset multiplot\n")


def _somebody_holds_all(run):
    """Whether some clients have capacity 1."""
    mix = run.option("capacity-mix", "uniform")
    if mix.startswith("two-class:"):
        return float(mix.split(":")[1]) > 0
    return mix in ("uniform", "income") or "1" in [part.split(":")[0] for part in mix.split(",")]


def differences(description, results):
    """Rolling minus static in each setting that has at least two pairs of seeds, once:
    (name, whether somebody holds all, the paired differences)."""
    out, seen = [], set()
    for e in description.experiments:
        for s in e.settings:
            if not {"fedrolex", "heterofl"} <= set(s.methods):
                continue
            first = e.run(s, "fedrolex", s.seeds[0])
            found = paired(results.by_seed(e, s, "fedrolex"), results.by_seed(e, s, "heterofl"))
            if first.key in seen or found is None or found.count < 2:
                continue
            seen.add(first.key)
            out.append((f"{e.name}: {s.title}", _somebody_holds_all(first), found))
    return out


def _differences(description, results):
    rows = sorted(differences(description, results), key=lambda row: (row[1], row[2].mean))
    if not rows:
        return ""
    # A tic's label is a format to gnuplot.
    names = ", ".join(_quoted(f"{name}, n {found.count}".replace("%", "%%")) + f" {i}"
                      for i, (name, _, found) in enumerate(rows))
    script = _head(900, 110 + 19 * len(rows), "Rolling minus static, points of accuracy")
    plots = []
    for all_held, colour, title in ((True, _COLOURS["heterofl"], "some clients hold the whole model"),
                                    (False, _COLOURS["fedrolex"], "none does")):
        own = [(i, found) for i, (_, held, found) in enumerate(rows) if held == all_held]
        if not own:
            continue
        script += _block(f"m{int(all_held)}", [f"{d.mean:.3f} {i} {d.low:.3f} {d.high:.3f}"
                                               for i, d in own])
        plots.append(f"$m{int(all_held)} using 1:2:3:4 with xerrorbars linewidth 2 pointtype 7 "
                     f"pointsize 0.7 linecolor rgb '{colour}' title '{title}'")
    return (script + f"unset grid\nset grid xtics linecolor rgb '#dddddd'\nset errorbars 0\n"
            f"set ytics ({names}) noenhanced font ',11'\nset yrange [-0.7:{len(rows) + 1.8}]\n"
            "set xrange [-25:40]\nset arrow from 0, graph 0 to 0, graph 1 nohead linecolor rgb "
            "'#666666'\nset xlabel 'mean, and its 95 % interval as far as there is space'\n"
            "set lmargin 42\nset key top right\nplot " + ", \\\n ".join(plots) + "\n")


def _mean_curve(rows):
    """(round, mean accuracy in percent) at the rounds that all rows have."""
    curves = [{p.round: 100 * p.accuracy for p in r.curve} for r in rows]
    return [(n, mean([c[n] for c in curves]))
            for n in sorted(set.intersection(*map(set, curves)))]


def _curves(description, results):
    """The three schemes over the rounds."""
    where = [("order", "L2", "2 labels"), ("order", "L5", "5 labels"),
             ("no-large", "L5", "5 labels, none of capacity 1")]
    script, drawn = _head(1320, 400, ""), 0
    body = "set multiplot layout 1,3\nset xlabel \"round\\n \"\nset xrange [0:*]\n"
    body += "set key below center maxrows 1 samplen 2 width -1\n"
    for i, (name, setting, title) in enumerate(where):
        e, plots = description.experiment(name), []
        s = e.setting(setting)
        for method in _THREE:
            rows = [r for seed in s.seeds if (r := results.rows.get(e.run(s, method, seed).key))]
            if not rows:
                continue
            script += _block(f"c{i}{method[0]}{method[-1]}",
                             [f"{n} {a:.3f}" for n, a in _mean_curve(rows)])
            plots.append(f"$c{i}{method[0]}{method[-1]} using 1:2 with linespoints linewidth 2 "
                         f"pointtype 7 pointsize 0.5 linecolor rgb '{_COLOURS[method]}' "
                         f"title '{_name(method)}'")
        if plots:
            drawn += 1
            body += (f"set title '{title}'\n" + ("set ylabel 'accuracy, %'\n" if i == 0 else
                                                 "unset ylabel\n") +
                     "plot " + ", \\\n ".join(plots) + "\n")
    return script + body + "unset multiplot\n" if drawn else ""


def _against_cost(name):
    def made(description, results):
        return _cost_curves(description.experiment(name), results)
    return made


def _cost_curves(e, results):
    """Accuracy against what was sent and what was computed."""
    lines = []
    for s in e.settings:
        for m in s.methods:
            curves = [r for seed in s.seeds
                      if (r := results.rows.get(e.run(s, m, seed).key)) and r.curve]
            if not curves:
                continue
            flops = mean([float(r.cells["flops_image"]) for r in curves]) / 1e6
            sent = mean([float(r.cells["bytes_round"]) for r in curves]) / 1e6
            lines.append((s, m, [(n * flops, n * sent, a) for n, a in _mean_curve(curves)]))
    if not lines:
        return ""
    script, flops, traffic = _head(1100, 560, ""), [], []
    dashes = {s.name: i + 1 for i, s in enumerate(e.settings)}
    for k, (s, m, points) in enumerate(lines):
        script += _block(f"m{k}", [f"{f:.3f} {b:.3f} {a:.3f}" for f, b, a in points])
        look = (f"with linespoints linewidth 2 pointtype 7 pointsize 0.5 dashtype {dashes[s.name]} "
                f"linecolor rgb '{_COLOURS[m]}' title '{m}" +
                (f", {s.title}'" if m != "fedavg" else "'"))
        flops.append(f"$m{k} using 1:3 {look}")
        traffic.append(f"$m{k} using 2:3 {look}")
    return (script + "set multiplot layout 1,2\nset key below center maxcols 1 font ',11'\n"
            "set ylabel 'accuracy, %'\n"
            "set xlabel \"multiply-adds of an image times rounds, millions\\n \"\nplot " +
            ", \\\n ".join(flops) + "\nset xlabel \"sent and received, MB\\n \"\nplot " +
            ", \\\n ".join(traffic) + "\nunset multiplot\n")


def _lines(name, label):
    def made(description, results):
        e = description.experiment(name)
        e, cells = _cells(description, results, name, e.methods)
        return _bars(e, cells, "", label) if cells else ""
    return made


_PICTURES = {
    "order": _order,
    "differences": _differences,
    "phases": _phases,
    "curves": _curves,
    "evenness": _evenness,
    "labels": _lines("labels", "labels of a client"),
    "share": _lines("share", "share of clients of capacity 1; the rest has 1/16"),
    "larger-server": _lines("larger-server", "width of the server's model against the clients'"),
    "participation": _lines("participation", "share of the clients in a round"),
    "dropout": _against_cost("dropout"),
    "lenet": _against_cost("lenet"),
}


def script(name, description, results):
    """gnuplot's script; empty where there is nothing to draw."""
    if name not in _PICTURES:
        raise Refusal(f"There is no picture {name}.")
    return _PICTURES[name](description, results)


def draw(names, description, results, folder):
    """Those pictures for which there are results."""
    if not names:
        return
    if shutil.which("gnuplot") is None:
        print("study: gnuplot is not installed, so the pictures are as they were.",
              file=sys.stderr)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        text = script(name, description, results)
        if not text:
            continue
        drawn = subprocess.run(["gnuplot"], input=text, capture_output=True, text=True)
        if drawn.returncode != 0 or not drawn.stdout.rstrip().endswith("</svg>"):
            print(f"study: gnuplot could not draw {name}: {drawn.stderr.strip()}", file=sys.stderr)
            continue
        (folder / f"study-{name}.svg").write_text(drawn.stdout, encoding="utf-8")
