#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""table.py results.json compile.txt: prints what scripts/bench has measured as tables in Markdown."""

import json
import sys


def table(heads, rows):
    rows = [heads] + [[str(x) for x in row] for row in rows]
    widths = [max(len(row[c]) for row in rows) for c in range(len(heads))]
    for number, row in enumerate(rows):
        print("| " + " | ".join(x.ljust(w) for x, w in zip(row, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print()


def main(results, compile_times):
    with open(results, encoding="utf-8") as file:
        data = json.load(file)
    context = data["context"]
    print(f"Compiler {context.get('compiler')}, flags {context.get('flags', '').strip()}; "
          f"{context['num_cpus']} processors; peers missing here: {context.get('missing peers')}.")
    print()

    # job/model/clients/scheme/element/threads/who
    cases = {}
    growth = []
    others = []
    for b in data["benchmarks"]:
        if b.get("run_type") == "aggregate" or b.get("error_occurred"):
            continue
        parts = b["name"].replace("/manual_time", "").split("/")
        if parts[0] in ("slice", "average"):
            cases.setdefault(tuple(parts[:6]), {})["/".join(parts[6:])] = b
        elif parts[0] == "growth":
            growth.append((parts, b))
        else:
            others.append((parts, b))

    print("Time beside the ceiling (1 is the speed of memcpy for the same bytes in and out), and how many "
          "times as long others take:")
    print()
    rows = []
    for (job, model, clients, scheme, element, threads), all_of in cases.items():
        own = all_of.get("subfed")
        if own is None:
            continue
        peers = [f"{who} {b['of_ceiling'] and own['of_ceiling'] / b['of_ceiling']:.1f}"
                 for who, b in all_of.items() if who not in ("subfed",)]
        rows.append([job, model, clients, scheme, element, threads, f"{own['ms']:.2f}",
                     f"{own['of_ceiling']:.2f}", ", ".join(peers)])
    table(["job", "model", "clients", "scheme", "element", "threads", "ms", "of ceiling",
           "others, times as long"], rows)

    if growth:
        print("How time and the library's own memory grow (one thread):")
        print()
        table(["along", "value", "scheme", "form", "ms", "of ceiling", "peak MB"],
              [[p[1], p[2], p[3], p[4], f"{b['ms']:.2f}", f"{b['of_ceiling']:.2f}",
                f"{b['peak_MB']:.2f}"] for p, b in growth])
    if others:
        print("Index sets, submodels and plans:")
        print()
        table(["what", "time"],
              [[" ".join(p), f"{b['real_time']:.3g} {b['time_unit']}"] for p, b in others])
    print("Seconds of processor time to compile a file that only includes <subfed/subfed.hpp>, "
          "without optimisation:")
    print()
    with open(compile_times, encoding="utf-8") as file:
        table(["compiler", "s"], [line.split() for line in file])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
