# SPDX-License-Identifier: MIT
"""What scripts/study does, with a trainer that trains nothing, and whether docs/study.md is what the
results say. Needs the standard library of Python 3.11 alone."""
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

if sys.version_info < (3, 11):
    print("Python 3.11 is needed.")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
TOOL, ROOT = HERE.parent, HERE.parent.parent.parent
sys.path.insert(0, str(TOOL))

from description import Description, Refusal  # noqa: E402
from document import Document, number, signed  # noqa: E402
from results import Point, Results, Row  # noqa: E402
import pictures  # noqa: E402
import spread  # noqa: E402

SMALL = """
[base]
rounds = 4
labels = 2
[[experiment]]
name = "first"
methods = ["fedrolex", "heterofl"]
seeds = [1, 2, 3]
against = [["fedrolex", "heterofl"]]
paper = [["two", "fedrolex", 69.44, 1.5, "Table 3"]]
[experiment.setting.two]
title = "two labels"
[experiment.setting.five]
title = "five labels"
options = { labels = 5, redraw-capacities = true }
[[experiment]]
name = "second"
methods = ["fedrolex"]
seeds = [1]
across = [["same", "none"]]
[experiment.setting.same]
[experiment.setting.none]
options = { labels = "" }
"""
TEMPLATE = "@table first@\n\n@tests first@\n\n@diff first/two/fedrolex~heterofl@ @runs@\n"


class Spread(unittest.TestCase):
    def test_mean_and_deviation(self):
        values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
        self.assertEqual(spread.mean(values), 5)
        self.assertAlmostEqual(spread.deviation(values), (32 / 7) ** 0.5, places=12)
        self.assertIsNone(spread.deviation([3.0]))

    def test_paired_by_seed(self):
        # Differences 1, 3 and 5 of the seeds that both have; 9 has no partner.
        found = spread.paired({1: 11.0, 2: 23.0, 3: 35.0, 9: 0.0}, {3: 30.0, 2: 20.0, 1: 10.0})
        self.assertEqual((found.count, found.mean, found.above), (3, 3, 3))
        self.assertAlmostEqual(found.error, 2 / 3 ** 0.5, places=12)
        self.assertAlmostEqual(found.high - found.mean, 4.3027 * 2 / 3 ** 0.5, places=3)
        self.assertIsNone(spread.paired({1: 1.0}, {2: 1.0}))
        self.assertIsNone(spread.paired({1: 1.0}, {1: 2.0}).error)

    def test_difference_of_samples_without_pairs(self):
        # Variances 1 and 4 of 3 and 4 values: error sqrt(1/3 + 1), Welch's degrees 4.57, taken as 4.
        found = spread.apart([9.0, 10.0, 11.0], [3 - 6 ** 0.5, 3.0, 3.0, 3 + 6 ** 0.5])
        self.assertAlmostEqual(found.mean, 7)
        self.assertAlmostEqual(found.error, (4 / 3) ** 0.5, places=12)
        self.assertAlmostEqual(found.high - found.mean, 2.7764 * (4 / 3) ** 0.5, places=3)
        self.assertAlmostEqual(found.mean - found.low, found.high - found.mean)
        self.assertIsNone(spread.apart([1.0], [1.0, 2.0]))
        self.assertEqual(spread.apart([1.0, 1.0], [3.0, 3.0]), spread.Apart(-2, 0, -2, -2))

    def test_quantiles_of_t(self):
        self.assertAlmostEqual(spread.t_quantile(4), 2.7764, places=4)
        self.assertAlmostEqual(spread.t_quantile(40), 2.0211, places=2)

    def test_gini(self):
        self.assertEqual(spread.gini([5, 5, 5]), 0)
        self.assertEqual(spread.gini([0, 0, 0]), 0)
        self.assertAlmostEqual(spread.gini([0, 0, 0, 8]), 0.75)
        self.assertAlmostEqual(spread.gini([1, 3]), 0.25)

    def test_correlation(self):
        self.assertAlmostEqual(spread.correlation([1, 2, 3], [6, 4, 2]), -1)
        self.assertIsNone(spread.correlation([1, 1], [1, 2]))

    def test_numbers_as_text(self):
        self.assertEqual([number(-0.04), signed(-0.04), signed(0.06), signed(-2)],
                         ["0.0", "0.0", "+0.1", "-2.0"])


class Runs(unittest.TestCase):
    def test_a_run_in_two_experiments_is_one(self):
        description = Description(SMALL)
        self.assertEqual(len(description.places()), 14)
        self.assertEqual(len(description.owners()), 13)
        same = next(p for p in description.places() if p.name == "second/same/fedrolex/1")
        self.assertEqual(description.owners()[same.run.key].name, "first/two/fedrolex/1")

    def test_options(self):
        places = {p.name: p.run for p in Description(SMALL).places()}
        self.assertEqual(places["first/five/heterofl/2"].words,
                         ["--method", "heterofl", "--seed", "2", "--rounds", "4", "--labels", "5",
                          "--redraw-capacities"])
        self.assertNotIn("--labels", places["second/none/fedrolex/1"].words)

    def test_evaluating_more_often_is_the_same_run(self):
        often = Description(SMALL.replace("rounds = 4", "eval-every = 1\nrounds = 4"))
        self.assertEqual(set(often.owners()), set(Description(SMALL).owners()))
        other = Description(SMALL.replace("rounds = 4", "rounds = 5"))
        self.assertFalse(set(other.owners()) & set(Description(SMALL).owners()))

    def test_first_seeds_first(self):
        seeds = [p.run.seed for p in Description(SMALL).queue() if p.experiment.name == "first"]
        self.assertEqual(seeds, sorted(seeds))

    def test_mistakes_are_named(self):
        for wrong, what in ((SMALL.replace("against", "agianst"), "agianst"),
                            (SMALL + "[[experiment]]\nname = 'first'\n", "two experiments first"),
                            (SMALL.replace('["same",', '["sane",'), "sane"),
                            ("[", "not TOML")):
            with self.assertRaisesRegex(Refusal, what):
                Description(wrong)


class Differences(unittest.TestCase):
    def test_each_setting_once_where_both_schemes_have_two_seeds(self):
        description = Description(SMALL + """
[[experiment]]
name = "again"
methods = ["heterofl", "fedrolex"]
seeds = [1, 2, 3]
[experiment.setting.two]
[experiment.setting.none-large]
options = { capacity-mix = "1/2:1,1/16:1" }
""")
        # Percent of the first setting's, of which the second scheme lacks a seed, and of the last one's.
        accuracy = {"first/two/fedrolex": [50, 60, 70], "first/two/heterofl": [52, 64],
                    "again/none-large/fedrolex": [30, 40], "again/none-large/heterofl": [20, 30],
                    "first/five/fedrolex": [90, 90], "first/five/heterofl": [80]}
        with tempfile.TemporaryDirectory() as empty:
            results = Results(empty)
        for place in description.places():
            cell, seed = place.name.rsplit("/", 1)
            values = accuracy.get(cell, [])
            if int(seed) <= len(values):
                results.rows[place.run.key] = Row({"accuracy": str(values[int(seed) - 1] / 100)}, [])
        found = [(name, held, round(d.mean, 6), d.count)
                 for name, held, d in pictures.differences(description, results)]
        self.assertEqual(found, [("first: two labels", True, -3, 2),
                                 ("again: none-large", False, 10, 2)])
        self.assertIn("'first: two labels, n 2' 1",
                      pictures.script("differences", description, results))


class Marks(unittest.TestCase):
    """Of the template, from results made up."""

    def setUp(self):
        self.description = Description(SMALL)
        with tempfile.TemporaryDirectory() as empty:
            self.results = Results(empty)
        # Of each seed the server's model and its model of 1/2, in percent.
        made_up = {"first/two/fedrolex": [(50, 40), (60, 42), (70, 44)],
                   "first/two/heterofl": [(30, 55), (31, 65), (32, 75)],
                   "first/five/heterofl": [(58, 20)]}
        for place in self.description.places():
            cell, seed = place.name.rsplit("/", 1)
            values = made_up.get(cell, [])
            if int(seed) <= len(values):
                whole, half = values[int(seed) - 1]
                self.results.rows[place.run.key] = Row(
                    {"accuracy": str(whole / 100), "local": "0", "worst": "",
                     "capacities": f"1={whole / 100} 0.5={half / 100}"}, [])

    def filled(self, template):
        return Document(self.description, self.results).filled(template)

    def test_models_of_capacities(self):
        text = self.filled("@capacities first@")
        self.assertIn("|  |  | model of 1 | model of 1/2 | n |", text)
        self.assertIn("| two labels | static | 31.0 (1.0) | 65.0 (10.0) | 3 |", text)
        self.assertIn("| five labels | static | 58.0 | 20.0 | 1 |", text)
        self.assertEqual(self.filled("@capacity first/two/fedrolex/0.5@"), "42.0")
        self.assertEqual(self.filled("@capacity first/five/fedrolex/0.5@"), "(not run yet)")

    def test_differences_of_any_two_series(self):
        self.assertEqual(self.filled("@between first/two/heterofl/0.5~first/two/fedrolex@"),
                         "+5.0 (standard error 0.0, n 3)")
        self.assertEqual(self.filled("@between first/five/heterofl~first/two/fedrolex@"),
                         "+8.0 (one seed)")
        self.assertEqual(self.filled("@between first/five/fedrolex~first/two/fedrolex@"),
                         "(not run yet)")
        text = self.filled("@pairs first/two/heterofl/0.5~first/two/fedrolex,\n"
                           "first/two/fedrolex~first/five/heterofl,\n"
                           "first/two/heterofl~first/five/heterofl,\n"
                           "first/five/fedrolex~first/two/fedrolex@")
        self.assertEqual(text.splitlines()[2:], [
            "| two labels | static's model of 1/2 - rolling | +5.0 | 0.0 | +5.0 to +5.0 | 3 of 3 |",
            "| two labels - five labels | rolling - static | -8.0 | - | - | 0 of 1 |",
            "| two labels - five labels | static | -28.0 | - | - | 0 of 1 |"])

    def test_papers_have_two_digits(self):
        self.assertEqual(self.filled("@paper first/two/fedrolex@"), "69.44")
        self.assertIn("| two labels | 60.0 (10.0), n 3 | 31.0 (1.0), n 3 | 69.44 (1.50) |",
                      self.filled("@table first@"))


    def test_what_an_accuracy_costs(self):
        # Of each seed: rounds, accuracies in percent. A round is 10 MB and 3 GFLOPs.
        curves = {"first/two/fedrolex": [[(2, 40), (4, 60)], [(2, 30), (4, 70)], [(2, 50), (4, 55)]],
                  "first/two/heterofl": [[(2, 20), (4, 45)], [(2, 20), (4, 80)]],
                  "first/five/fedrolex": [[(2, 30), (4, 50)]],
                  "first/five/heterofl": [[(2, 49), (4, 45)]]}
        self.results.rows.clear()
        self.assertEqual(self.filled("@reach first/50@"), "There are no results yet.")
        for place in self.description.places():
            cell, seed = place.name.rsplit("/", 1)
            values = curves.get(cell, [])
            if int(seed) <= len(values):
                curve = [Point(r, a / 100, 0, r * 10_000_000, r * 3_000_000_000)
                         for r, a in values[int(seed) - 1]]
                self.results.rows[place.run.key] = Row({}, curve)
        self.assertEqual(self.filled("@reach first/50@").splitlines(), [
            "|  |  | seeds that reach it | rounds | MB | GFLOPs | on the frontier |",
            "|" + "---|" * 7,
            # Half-way between two evaluations twice, and at the first evaluation.
            "| two labels | rolling | 3 of 3 | at most 2.7 | at most 27 | at most 8 | yes |",
            "| two labels | static | 1 of 2 | 3.0 | 30 | 9 |  |",
            "| five labels | rolling | 1 of 1 | 4.0 | 40 | 12 |  |",
            "| five labels | static | 0 of 1 | - | - | - |  |"])
        # Cheaper in one of the two is enough; who has no row for a seed is not beaten by it.
        for seed, (megabytes, gigaflops) in enumerate([(1, 90), (2, 90), (3, 90)], start=1):
            run = next(p.run for p in self.description.places()
                       if p.name == f"first/two/heterofl/{seed}")
            self.results.rows[run.key] = Row({}, [
                Point(4, 0.6, 0, megabytes * 1_000_000, gigaflops * 1_000_000_000)])
        text = self.filled("@reach first/50@")
        self.assertIn("| static | 3 of 3 | at most 4.0 | at most 2 | at most 90 | yes |", text)
        self.assertIn("| rolling | 3 of 3 | at most 2.7 | at most 27 | at most 8 | yes |", text)
        self.assertIn("| five labels | rolling | 1 of 1 | 4.0 | 40 | 12 |  |", text)


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        (self.at / "small.toml").write_text(SMALL)
        (self.at / "small.md.in").write_text(TEMPLATE)

    def command(self, *words):
        return [sys.executable, "-B", str(TOOL / "study.py"), "--description",
                str(self.at / "small.toml"), "--template", str(self.at / "small.md.in"),
                "--results", str(self.at / "results"), "--document", str(self.at / "small.md"),
                "--work", str(self.at / "work"), "--trainer", str(HERE / "fake_trainer.py"),
                "--version-of-trainer", "fake", *words]

    def environment(self, **more):
        return {**os.environ, "FAKE_LOG": str(self.at / "log"), **more}

    def study(self, *words, **more):
        return subprocess.run(self.command(*words), capture_output=True, text=True,
                              env=self.environment(**more), timeout=120)

    def started(self):
        log = self.at / "log"
        return log.read_text().splitlines() if log.exists() else []

    def test_runs_all_and_then_nothing(self):
        first = self.study("--jobs", "2")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(len(self.started()), 13)
        self.assertIn("13 of 13 runs", first.stderr)
        text = (self.at / "small.md").read_text()
        self.assertIn("| two labels | 62.0 (1.0), n 3 | 52.0 (1.0), n 3 | 69.44 (1.50) |", text)
        self.assertIn("| two labels | rolling - static | +10.0 | 0.0 | +10.0 to +10.0 | 3 of 3 |",
                      text)
        self.assertIn("\n+10.0 (standard error 0.0, n 3) 13\n", text)
        again = self.study()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.started()), 13)
        self.assertEqual((self.at / "small.md").read_text(), text)
        self.assertEqual(list((self.at / "work").iterdir()), [])

    def test_rows(self):
        self.study("--only", "^first/five/fedrolex/2$")
        row = next(iter(Results(self.at / "results").rows.values()))
        self.assertEqual((row.accuracy, row.local, row.worst, row.gini), (62, 72, 25, 0.25))
        self.assertEqual(row.capacities, {"1": 60, "0.5": 40})
        self.assertEqual([(p.round, p.accuracy) for p in row.curve], [(2, 0.31), (4, 0.62)])
        self.assertEqual(row.cells["command"], "scripts/demo --method fedrolex --seed 2 --rounds 4 "
                                               "--labels 5 --redraw-capacities")
        self.assertEqual(row.cells["version"], "fake")
        self.assertEqual(row.keep, [(2, {"0.50": 0, "0.75": 4, "1.00": 0}),
                                    (4, {"0.50": 0, "0.75": 2, "1.00": 1})])

    def test_keep_probabilities(self):
        (self.at / "small.md.in").write_text("@keep first/five/fedrolex@\n@keep first/two/fedrolex@")
        self.study("--only", "^first/two/fedrolex/1$")
        self.assertFalse((self.at / "results" / "first-keep.csv").exists())
        self.study("--only", "^first/.*/fedrolex/")
        # Of the three seeds 1/2, 2/3 and 3/4 are in the second bin in the end; none is in the first.
        self.assertEqual((self.at / "small.md").read_text().splitlines(), [
            "| round | 0.50 to 0.75 | 0.75 to 1.00 |", "|---|---|---|",
            "| 2 | 100.0 | 0.0 |", "| 4 | 63.9 | 36.1 |", "No run of this has reported it yet."])

    def test_only_and_list(self):
        self.study("--only", "first/two/.*/[12]$")
        self.assertEqual(len(self.started()), 4)
        listed = self.study("--list")
        self.assertRegex(listed.stdout, r"two/heterofl +2 of 3\n")
        self.assertRegex(listed.stdout, r"five/heterofl +0 of 3\n")
        text = (self.at / "small.md").read_text()
        self.assertIn("| two labels | 61.5 (0.7), n 2 of 3 | 51.5 (0.7), n 2 of 3 |", text)
        self.assertIn("| five labels | not run yet | not run yet |", text)
        self.assertEqual(len(self.started()), 4)

    def test_a_failing_run_is_named_and_the_others_go_on(self):
        found = self.study(FAKE_FAILS="heterofl")
        self.assertEqual(found.returncode, 1)
        self.assertIn("first/two/heterofl/1 failed: fake: out of luck (status 3", found.stderr)
        self.assertEqual(len(Results(self.at / "results").rows), 7)
        self.assertEqual(self.study().returncode, 0)  # only those that failed
        self.assertEqual(len(Results(self.at / "results").rows), 13)
        self.assertEqual(len(self.started()), 13 + 6)

    def test_ctrl_c_stops_and_the_same_command_continues(self):
        running = subprocess.Popen(self.command("--jobs", "1"), text=True, stderr=subprocess.PIPE,
                                   env=self.environment(FAKE_WAITS="heterofl"))
        end = time.monotonic() + 60
        while not list(self.at.glob("work/*/waiting")) and time.monotonic() < end:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, printed = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        self.assertIn("Stopped. The same command continues.", printed)
        self.assertEqual(len(list(self.at.glob("work/*/checkpoint"))), 1)
        self.assertEqual(len(Results(self.at / "results").rows), 1)
        rest = self.study()
        self.assertEqual(rest.returncode, 0, rest.stderr)
        self.assertEqual(len(Results(self.at / "results").rows), 13)
        self.assertEqual(len(self.started()), 1 + 1 + 12)

    def test_refusals(self):
        for words, what in ((("--only", "("), "--only is no regular expression"),
                            (("--jobs", "-1"), "--jobs needs a number of at least 1"),
                            (("--trainer", "/nowhere"), "There is no trainer /nowhere")):
            found = self.study(*words)
            self.assertEqual(found.returncode, 1)
            self.assertIn(what, found.stderr)
        (self.at / "small.md.in").write_text("@paper first/two/fedrolex~heterofl@")
        self.assertIn("The papers have no first/two/", self.study("--render").stderr)
        (self.at / "small.md.in").write_text("@meen first/two/fedrolex@")
        self.assertIn("@meen first/two/fedrolex@, which means nothing", self.study("--render").stderr)


class Repository(unittest.TestCase):
    """The study itself."""

    def setUp(self):
        self.description = Description((TOOL / "study.toml").read_text(encoding="utf-8"))
        self.results = Results(ROOT / "docs" / "study")

    def test_document_is_what_the_results_say(self):
        template = (TOOL / "study.md.in").read_text(encoding="utf-8")
        written = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
        self.assertTrue(Document(self.description, self.results).filled(template) == written,
                        "docs/study.md is not what scripts/study --render writes")

    def test_rows_are_of_the_description(self):
        places = {p.run.key: p for p in self.description.places()}
        for key, row in self.results.rows.items():
            self.assertIn(key, places, f"no experiment has the run of {row.cells['command']}")
            self.assertEqual(row.cells["seed"], str(places[key].run.seed))
            self.assertEqual(row.curve[-1].round, int(row.cells["rounds"]))
            self.assertAlmostEqual(100 * row.curve[-1].accuracy, row.accuracy)

    def test_repeated_runs_are_those_of_another_version(self):
        with open(TOOL / "repeated.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        apart = []
        for row in rows:
            again = self.results.rows[row["hash"]]
            self.assertNotEqual(again.cells["version"], row["version"])
            apart.append(abs(again.accuracy - 100 * float(row["accuracy"])))
        said = Document(self.description, self.results).filled("@repeated@")
        self.assertTrue(said.startswith(f"{len(rows)} runs were made by two versions"), said)
        self.assertIn(f"{max(apart):.2f} at most", said)


if __name__ == "__main__":
    unittest.main()
