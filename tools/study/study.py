# SPDX-License-Identifier: MIT
"""The study of docs/study.md: see scripts/study --help."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from description import Description, Refusal
from results import Results

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent.parent


def _arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/study",
        description="Runs the experiments of tools/study/study.toml that have no results in "
                    "docs/study yet, and writes docs/study.md from the results. After ctrl-C the "
                    "same command continues.")
    parser.add_argument("--list", action="store_true",
                        help="show which runs there are and which are done; runs nothing")
    parser.add_argument("--only", metavar="REGEX", default="",
                        help="only runs whose name experiment/setting/method/seed has a match")
    parser.add_argument("--jobs", metavar="R", type=int, default=0,
                        help="how many runs at a time; by default one for each processor")
    parser.add_argument("--threads", metavar="T", type=int, default=0,
                        help="threads of each run; by default the processors are shared out. No "
                             "result depends on it")
    parser.add_argument("--render", action="store_true",
                        help="only write docs/study.md and its pictures again; trains nothing")
    parser.add_argument("--description", type=Path, default=_HERE / "study.toml",
                        help="another file than tools/study/study.toml")
    parser.add_argument("--template", type=Path, default=_HERE / "study.md.in",
                        help="another file than tools/study/study.md.in")
    parser.add_argument("--results", type=Path, default=_ROOT / "docs" / "study",
                        help="another folder than docs/study")
    parser.add_argument("--document", type=Path, default=_ROOT / "docs" / "study.md",
                        help="another file than docs/study.md")
    parser.add_argument("--work", type=Path, default=_ROOT / "build" / "study",
                        help="the folder of unfinished runs; by default build/study")
    parser.add_argument("--trainer", type=Path,
                        default=_ROOT / "build/demo/examples/trainer/subfed_trainer",
                        help="another trainer than that of build/demo")
    parser.add_argument("--version-of-trainer", metavar="TEXT",
                        help="what the results say of its version; by default git's description of "
                             "this repository")
    return parser.parse_args()


def _version():
    try:
        found = subprocess.run(["git", "-C", _ROOT, "describe", "--always", "--dirty"],
                               capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found = "unknown"
    return found


def _list(description, results, wanted):
    for experiment in description.experiments:
        lines = []
        for setting in experiment.settings:
            for method in setting.methods:
                runs = [p for p in wanted if p.experiment is experiment and
                        p.setting is setting and p.run.method == method]
                if not runs:
                    continue
                done = [p for p in runs if results.of(p)]
                lines.append(f"  {setting.name + '/' + method:<40} {len(done)} of {len(runs)}")
        if lines:
            print(f"{experiment.name}: {experiment.title} ({experiment.repeats})")
            print("\n".join(lines))
    known = description.owners()
    strangers = [k for k in results.rows if k not in known]
    if strangers:
        print(f"{len(strangers)} results are of runs that the description no longer has.")


def main():
    asked = _arguments()
    description = Description(asked.description.read_text(encoding="utf-8"))
    results = Results(asked.results)
    try:
        only = re.compile(asked.only)
    except re.error as error:
        raise Refusal(f"--only is no regular expression: {error}.") from error
    if asked.list:
        _list(description, results, [p for p in description.places() if only.search(p.name)])
        return 0

    failed, stopped = [], False
    if not asked.render:
        from runner import Runner
        jobs = asked.jobs or os.cpu_count() or 1
        if jobs < 1:
            raise Refusal("--jobs needs a number of at least 1.")
        if not os.access(asked.trainer, os.X_OK):
            raise Refusal(f"There is no trainer {asked.trainer}.")
        wanted = {p.run.key for p in description.places() if only.search(p.name)}
        todo = [p for p in description.queue() if p.run.key in wanted and not results.of(p)]
        print(f"{len(wanted) - len(todo)} of {len(wanted)} runs are done.", file=sys.stderr)
        runner = Runner(results, description.owners(), asked.trainer, asked.work, jobs,
                        asked.threads, asked.version_of_trainer or _version())
        failed = runner.run(todo)
        stopped = runner.stopped
        if failed:
            print(f"{len(failed)} runs failed: {', '.join(failed)}", file=sys.stderr)

    from document import write
    write(description, results, asked.template, asked.document)
    if stopped:
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Refusal, OSError) as error:
        print(f"study: {error}", file=sys.stderr)
        sys.exit(1)
