#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables and a picture of what the benchmarks have measured. scripts/bench calls it.

report.py summary RESULTS.json COMPILE.txt MEASURED.json   what Google Benchmark wrote, made small
report.py tables MEASURED.json                             prints all tables in Markdown
report.py document MEASURED.json DOC.md PICTURE.svg        puts tables between the marks of a document,
                                                           and draws the heat map with gnuplot
report.py check MEASURED.json DOC.md                       fails where the document has other figures
report.py compare OLD.json NEW.json                        names the cells that lost more than a tenth
"""

import json
import re
import statistics
import subprocess
import sys

SCHEMES = ("rolling", "static", "random", "ensemble")
LOST = 0.9  # of the old ratio to the ceiling


# --- what was measured ----------------------------------------------------------------------------


def summary(results, compile_times):
    """{machine, cases: {name: {ms, of_ceiling, GB_s}}, growth, times, compile}."""
    data = read(results)
    context = data["context"]
    out = {"machine": {}, "cases": {}, "growth": {}, "times": {}, "compile": {}}
    speeds = {}
    for b in data["benchmarks"]:
        if b.get("run_type") == "aggregate" or b.get("error_occurred"):
            continue
        name = b["name"].replace("/manual_time", "")
        kind = name.split("/")[0]
        if kind in ("slice", "average"):
            out["cases"][name] = {key: float(f"{b[key]:.4g}") for key in ("ms", "of_ceiling", "GB_s")}
        elif kind == "memory":
            _, what, threads = name.split("/")
            speeds[f"{what} GB/s, {_threads(threads)}"] = round(b["GB_s"], 1)
        elif kind == "growth":
            out["growth"][name] = {key: float(f"{b[key]:.4g}")
                                   for key in ("ms", "of_ceiling", "peak_MB")}
        else:
            out["times"][name] = f"{b['real_time']:.3g} {b['time_unit']}"
    with open(compile_times, encoding="utf-8") as file:
        for line in file:  # | header | s | ratio |
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 3 and cells[1][:1].isdigit():
                out["compile"][cells[0]] = {"s": float(cells[1]), "ratio": float(cells[2])}
    out["machine"] = {
        "processor": context.get("processor", "unknown"),
        "cores": context["num_cpus"],
        "instructions": context.get("instructions", "baseline"),
        "compiler": context.get("compiler", "unknown"),
        "flags": context.get("flags", "").strip(),
        "missing peers": context.get("missing peers", "none"),
        "date": context["date"][:10],
    }
    for threads in (1, 2):
        ceilings = [b["GB_s"] / b["of_ceiling"] for name, b in out["cases"].items()
                    if name.startswith("slice/PreResNet18/10/") and f"/float/{threads}/" in name]
        if ceilings:
            out["machine"][f"memcpy GB/s, {_threads(threads)}"] = round(
                statistics.median(ceilings), 1)
    out["machine"] |= speeds
    return out


def _threads(number):
    return f"{number} thread{'s' * (int(number) > 1)}"


class case:
    """One name of a benchmark: job/model/clients/scheme/element/threads/who."""

    def __init__(self, name, values):
        parts = name.split("/")
        self.name = name
        self.job, self.model, self.clients, self.scheme, self.element, self.threads = parts[:6]
        self.who = "/".join(parts[6:])
        self.ms, self.of_ceiling = values["ms"], values["of_ceiling"]

    def cell(self):
        return (self.job, self.model, self.clients, self.scheme, self.element, self.threads)


def cases_of(measured):
    return [case(name, values) for name, values in measured["cases"].items()]


# --- tables ---------------------------------------------------------------------------------------


def table(heads, rows):
    if not rows:
        return "Not measured.\n"
    rows = [heads] + [[str(x) for x in row] for row in rows]
    widths = [max(len(row[c]) for row in rows) for c in range(len(heads))]
    lines = []
    for number, row in enumerate(rows):
        lines.append("| " + " | ".join(x.ljust(w) for x, w in zip(row, widths)).rstrip() + " |")
        if number == 0:
            lines.append("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines) + "\n"


def machine(measured):
    m = measured["machine"]
    compiler = m["compiler"]  # Clang names itself, GCC does not
    compiler = f"GCC {compiler}" if compiler[:1].isdigit() else compiler

    def speeds(of):
        return ", ".join(f"{value} GB/s with {key.split(', ')[1]}" for key, value in m.items()
                         if key.startswith(of))

    reading = speeds("reading")
    reading = f"; reading 1 GiB alone, {reading}" if reading else ""
    return (f"{m['processor']}, {m['cores']} cores, instructions in use: {m['instructions']}; "
            f"{compiler}, `{m['flags']}`; {m['date']}. memcpy moves, read and written, "
            f"{speeds('memcpy')}{reading}. Peers that were not there: {m['missing peers']}.\n")


def whole(measured):
    """The median over all cells of this library, the lowest cells, and the gain of a second thread."""
    own = [c for c in cases_of(measured) if c.who == "subfed"]
    ratios = sorted(c.of_ceiling for c in own)
    if not ratios:
        return "Not measured.\n"
    lowest = sorted(own, key=lambda c: c.of_ceiling)[:5]
    rows = [["cells", len(own)], ["median of all cells", f"{statistics.median(ratios):.2f}"]]
    for job in ("slice", "average"):
        some = [c.of_ceiling for c in own if c.job == job]
        if some:
            rows.append([f"median of {job}", f"{statistics.median(some):.2f}"])
    rows.append(["cells under 0.4", sum(r < 0.4 for r in ratios)])
    for c in lowest:
        rows.append([f"lowest: {c.job}, {c.model}, {c.clients} clients, {c.scheme}, {c.element}, "
                     f"{c.threads} thread{'s' * (c.threads != '1')}", f"{c.of_ceiling:.2f}"])
    one = {c.cell()[:5]: c for c in own if c.threads == "1"}
    gains = [(one[c.cell()[:5]].ms / c.ms, c) for c in own
             if c.threads == "2" and c.cell()[:5] in one]
    if gains:
        gain, c = min(gains, key=lambda pair: pair[0])
        rows.append(["two threads over one, median",
                     f"{statistics.median(g for g, _ in gains):.2f}"])
        rows.append([f"two threads over one, least: {c.job}, {c.model}, {c.clients} clients, "
                     f"{c.scheme}", f"{gain:.2f}"])
    return table(["of the ceiling", ""], rows)


def peers(measured):
    """PreResNet18, ten clients: this library's time, and how many times as long others take."""
    by_cell = {}
    for c in cases_of(measured):
        if (c.model, c.clients) == ("PreResNet18", "10"):
            by_cell.setdefault(c.cell(), {})[c.who] = c
    rows = []
    for cell, who in by_cell.items():
        if "subfed" not in who:
            continue
        own = who["subfed"]
        others = ", ".join(f"{name} {own.of_ceiling / c.of_ceiling:.1f}" for name, c in who.items()
                           if not name.startswith("subfed"))
        rows.append([own.job, own.scheme, own.element, own.threads, f"{own.ms:.2f}",
                     f"{own.of_ceiling:.2f}", others])
    return table(["job", "scheme", "element", "threads", "ms", "of ceiling",
                  "others, times as long"], rows)


def forms(measured):
    """PreResNet18, ten clients, one thread: the other averages beside the one pass."""
    picked = {}
    names = []
    for c in cases_of(measured):
        if (c.job, c.model, c.clients, c.threads) != ("average", "PreResNet18", "10", "1"):
            continue
        if c.who.startswith("subfed"):
            picked[c.who, c.scheme, c.element] = c
            if c.who not in names:
                names.append(c.who)
    rows = []
    for name in names:
        for element in ("float", "half"):
            row = [name.replace("subfed", "").strip() or "one pass", element]
            for scheme in SCHEMES:
                c = picked.get((name, scheme, element))
                own = picked.get(("subfed", scheme, element))
                times = f" ({own.of_ceiling / c.of_ceiling:.1f})" if c and own and c is not own else ""
                row.append(f"{c.of_ceiling:.2f}{times}" if c else "")
            if any(row[2:]):
                rows.append(row)
    return table(["average", "element", *SCHEMES], rows)


def heat_cells(measured):
    """(rows, columns, ratios) of all cells of one thread."""
    own = {c.cell(): c.of_ceiling for c in cases_of(measured) if c.who == "subfed"}
    rows = list(dict.fromkeys((cell[1], cell[2]) for cell in own))
    columns = [(job, element, scheme) for job in ("slice", "average")
               for element in ("float", "half") for scheme in SCHEMES]
    return rows, columns, [[own.get((job, model, clients, scheme, element, "1"))
                            for job, element, scheme in columns] for model, clients in rows]


def models(measured):
    rows, columns, ratios = heat_cells(measured)
    out = []
    for (model, clients), line in zip(rows, ratios):
        for job in ("slice", "average"):
            for element in ("float", "half"):
                some = [ratio for column, ratio in zip(columns, line) if column[:2] == (job, element)]
                if any(r is not None for r in some):
                    out.append([model, clients, job, element,
                                *("" if r is None else f"{r:.2f}" for r in some)])
    return table(["model", "clients", "job", "element", *SCHEMES], out)


def growth(measured):
    return table(["along", "value", "scheme", "form", "ms", "of ceiling", "peak MB"],
                 [[*(name.split("/")[1:] if name.count("/") == 4 else
                     [*name.split("/")[1:3], "", name.split("/")[3]]),
                   f"{b['ms']:.2f}", f"{b['of_ceiling']:.2f}", f"{b['peak_MB']:.2f}"]
                  for name, b in measured["growth"].items()])


def times(measured):
    return table(["what", "time"],
                 [[name.replace("/", " "), time] for name, time in measured["times"].items()])


def compile_times(measured):
    return table(["header", "s", "ratio"],
                 [[c, f"{v['s']:.2f}", f"{v['ratio']:.1f}"] for c, v in measured["compile"].items()])


TABLES = {"machine": machine, "whole": whole, "peers": peers, "forms": forms, "models": models,
          "growth": growth, "times": times, "compile": compile_times}


# --- the document ---------------------------------------------------------------------------------


def with_tables(text, measured):
    """The document with each <!-- measured: NAME --> .. <!-- end --> filled anew."""

    def fill(match):
        if match[1] not in TABLES:
            sys.exit(f"there is no table '{match[1]}'; there are {', '.join(TABLES)}")
        return f"<!-- measured: {match[1]} -->\n{TABLES[match[1]](measured)}<!-- end -->"

    return re.sub(r"<!-- measured: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def heat_map(measured, picture):
    """A gnuplot script: a square for each cell, from red (0) over white (0.7) to blue (1)."""
    rows, columns, ratios = heat_cells(measured)
    lines = [
        "set terminal svg size 1180,%d font 'Helvetica,13' background '#ffffff'" % (
            210 + 34 * len(rows)),
        f"set output '{picture}'",
        "set title 'Speed as a share of memcpy of the same bytes, one thread' font 'Helvetica,16' "
        "offset 0,1.7",
        "set palette defined (0 '#b2182b', 0.4 '#f4a582', 0.7 '#f7f7f7', 1 '#4393c3', "
        "1.2 '#2166ac')",
        "set cbrange [0:1.2]",
        "set colorbox user origin 0.93,0.2 size 0.015,0.55",
        "set lmargin at screen 0.17",
        "set rmargin at screen 0.915",
        "set tmargin at screen 0.78",
        "set bmargin at screen 0.17",
        f"set xrange [-0.5:{len(columns) - 0.5}]",
        f"set yrange [{len(rows) - 0.5}:-0.5]",
        "unset key",
        "set tics scale 0",
        "set xtics rotate by 45 right (" + ", ".join(
            f"'{column[2]}' {x}" for x, column in enumerate(columns)) + ")",
        "set ytics (" + ", ".join(
            f"'{model}, {clients} clients' {y}" for y, (model, clients) in enumerate(rows)) + ")",
    ]
    for start in range(0, len(columns), len(SCHEMES)):
        job, element, _ = columns[start]
        lines.append(f"set label '{job}, {element}' at {start + 1.5},graph 1.06 center")
        if start:
            lines.append(f"set arrow from {start - 0.5},graph 0 to {start - 0.5},graph 1 nohead front "
                         "linewidth 2 linecolor rgb '#666666'")
    lines.append("$cells << END")
    for y, line in enumerate(ratios):
        for x, ratio in enumerate(line):
            if ratio is not None:
                lines.append(f"{x} {y} {ratio:.2f}")
    lines += [
        "END",
        "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid noborder "
        "fillcolor palette, \\",
        " $cells using 1:2:(sprintf('%.2f', $3)) with labels font 'Helvetica,12'",
    ]
    return "\n".join(lines) + "\n"


def draw(measured, picture):
    script = heat_map(measured, picture)
    try:
        done = subprocess.run(["gnuplot"], input=script, text=True, check=False)
    except FileNotFoundError:
        sys.exit("gnuplot is not installed (Debian: gnuplot-nox): there is no picture.")
    if done.returncode:
        sys.exit("gnuplot could not draw the picture.")


# --- two runs -------------------------------------------------------------------------------------


def compare(old, new):
    """Prints the cells that lost or won more than a tenth; returns whether any has lost."""
    if old["machine"].get("processor") != new["machine"].get("processor"):
        print(f"Note: other machines, {old['machine'].get('processor')} and "
              f"{new['machine'].get('processor')}: ratios to the ceiling carry over, roughly.")
    before = {c.name: c for c in cases_of(old) if c.who.startswith("subfed")}
    after = {c.name: c for c in cases_of(new) if c.who.startswith("subfed")}
    both = [name for name in after if name in before]
    changes = {name: after[name].of_ceiling / before[name].of_ceiling for name in both}
    for what, names in (
            ("lost", [n for n in both if changes[n] < LOST]),
            ("won", [n for n in both if changes[n] > 1 / LOST])):
        print(f"\n{len(names)} of {len(both)} cells have {what} more than a tenth"
              + (":" if names else "."))
        if names:
            print(table(["cell", "of ceiling before", "now", "ratio"],
                        [[n, f"{before[n].of_ceiling:.2f}", f"{after[n].of_ceiling:.2f}",
                          f"{changes[n]:.2f}"] for n in sorted(names, key=changes.get)]))
    gone = [name for name in before if name not in after]
    if gone:
        print(f"{len(gone)} cells of the old run are not in the new one.")
    return any(change < LOST for change in changes.values())


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"{path} has no results: {error}")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    match arguments:
        case [] | ["--help"]:
            print(__doc__)
        case ["summary", results, compiled, out]:
            write(out, json.dumps(summary(results, compiled), indent=1) + "\n")
        case ["tables", measured]:
            for name, make in TABLES.items():
                print(f"{name}\n\n{make(read(measured))}")
        case ["document", measured, document, picture]:
            with open(document, encoding="utf-8") as file:
                text = file.read()
            write(document, with_tables(text, read(measured)))
            draw(read(measured), picture)
        case ["check", measured, document]:
            with open(document, encoding="utf-8") as file:
                text = file.read()
            if text != with_tables(text, read(measured)):
                print(f"{document} has other figures than {measured}: run bench/report.py document")
                return 1
        case ["compare", old, new]:
            return int(compare(read(old), read(new)))
        case _:
            sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
