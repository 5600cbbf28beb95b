# SPDX-License-Identifier: MIT
"""Tests of report.py: what the tables and comparisons say of measurements made up here."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import report


def measured(**ratios):
    """Cells of one model by name, job_scheme_element_threads."""
    cases = {}
    for key, ratio in ratios.items():
        job, scheme, element, threads = key.split("_")
        cases[f"{job}/VGG-9/10/{scheme}/{element}/{threads}/subfed"] = {
            "ms": 10 / ratio, "of_ceiling": ratio, "GB_s": 10 * ratio}
    return {"machine": {"processor": "one", "cores": 2, "instructions": "avx2", "compiler": "12",
                        "flags": "-O3", "missing peers": "none", "date": "2026-01-01",
                        "memcpy GB/s, 1 thread": 10.0},
            "cases": cases, "growth": {}, "times": {}, "compile": {}}


class Tables(unittest.TestCase):
    def test_median_lowest_and_threads(self):
        text = report.whole(measured(slice_rolling_float_1=0.9, slice_rolling_float_2=0.3,
                                     average_random_half_1=0.5))
        self.assertIn("| median of all cells", text)
        rows = {row.split("|")[1].strip(): row.split("|")[2].strip()
                for row in text.splitlines()}
        self.assertEqual(rows["median of all cells"], "0.50")
        self.assertEqual(rows["median of slice"], "0.60")
        self.assertEqual(rows["cells under 0.4"], "1")
        self.assertEqual(rows["lowest: slice, VGG-9, 10 clients, rolling, float, 2 threads"], "0.30")
        self.assertEqual(rows["two threads over one, median"], "0.33")

    def test_models_have_one_row_a_type(self):
        text = report.models(measured(average_random_float_1=0.5, average_ensemble_float_1=0.25,
                                      average_ensemble_float_2=0.75))
        self.assertEqual(text.splitlines()[2:], [
            "| VGG-9 | 10      | average | float   |         |        | 0.50   | 0.25 |"])

    def test_peers_take_so_many_times_as_long(self):
        m = measured()
        for who, ratio in (("subfed", 0.8), ("plain loop", 0.2), ("subfed streaming", 0.4)):
            m["cases"][f"average/PreResNet18/10/rolling/float/1/{who}"] = {
                "ms": 1 / ratio, "of_ceiling": ratio, "GB_s": 1}
        self.assertIn("plain loop 4.0", report.peers(m))
        self.assertNotIn("streaming", report.peers(m))
        self.assertIn("0.40 (2.0)", report.forms(m))

    def test_a_document_changes_between_its_marks_alone(self):
        text = "a\n<!-- measured: models -->\nold\n<!-- end -->\nb\n"
        new = report.with_tables(text, measured(slice_rolling_float_1=0.9))
        self.assertTrue(new.startswith("a\n<!-- measured: models -->\n| model"))
        self.assertTrue(new.endswith("|\n<!-- end -->\nb\n"))
        self.assertEqual(new, report.with_tables(new, measured(slice_rolling_float_1=0.9)))
        with self.assertRaisesRegex(SystemExit, "there is no table 'models2'"):
            report.with_tables(text.replace("models", "models2"), measured())

    def test_a_figure_typed_by_hand_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            figures, document = Path(folder, "m.json"), Path(folder, "d.md")
            m = measured(slice_rolling_float_1=0.9)
            figures.write_text(json.dumps(m))
            document.write_text(report.with_tables("<!-- measured: models -->\n<!-- end -->\n", m))
            self.assertEqual(report.main(["check", str(figures), str(document)]), 0)
            document.write_text(document.read_text().replace("0.90", "0.95"))
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(report.main(["check", str(figures), str(document)]), 1)
            self.assertIn("has other figures", said.getvalue())

    def test_the_picture_has_every_cell(self):
        script = report.heat_map(measured(slice_rolling_float_1=0.9, average_ensemble_half_1=0.25,
                                          average_ensemble_half_2=0.5), "p.svg")
        self.assertIn("\n0 0 0.90\n15 0 0.25\nEND\n", script)


class Comparison(unittest.TestCase):
    def compared(self, old, new):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            lost = report.compare(old, new)
        return lost, said.getvalue()

    def test_more_than_a_tenth_is_lost(self):
        lost, said = self.compared(measured(slice_rolling_float_1=1.0, slice_static_float_1=1.0),
                                   measured(slice_rolling_float_1=0.89, slice_static_float_1=0.91))
        self.assertTrue(lost)
        self.assertIn("1 of 2 cells have lost", said)
        self.assertIn("slice/VGG-9/10/rolling/float/1/subfed", said)
        self.assertNotIn("static", said)

    def test_less_is_noise(self):
        lost, said = self.compared(measured(slice_rolling_float_1=1.0, average_ensemble_half_1=1.0),
                                   measured(slice_rolling_float_1=0.91))
        self.assertFalse(lost)
        self.assertIn("1 cells of the old run are not in the new one", said)


class Summary(unittest.TestCase):
    def test_names_and_counters_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            results, compiled = Path(folder, "r.json"), Path(folder, "c.txt")
            compiled.write_text("| header | s | ratio |\n| --- | --- | --- |\n| all | 1.50 | 2.5 |\n")
            row = {"ms": 2.0, "of_ceiling": 0.5, "GB_s": 4.0, "run_type": "iteration",
                   "real_time": 2.0, "time_unit": "ms"}
            results.write_text(json.dumps({
                "context": {"date": "2026-01-01T00:00:00", "num_cpus": 2, "processor": "one"},
                "benchmarks": [
                    row | {"name": "slice/PreResNet18/10/rolling/float/1/subfed/manual_time"},
                    row | {"name": "growth/clients/10/rolling/one pass/manual_time", "peak_MB": 3},
                    row | {"name": "planning/draw/rolling"},
                    row | {"name": "memory/reading/2/manual_time"},
                    row | {"name": "slice/x", "run_type": "aggregate"}]}))
            m = report.summary(results, compiled)
        self.assertEqual(list(m["cases"]), ["slice/PreResNet18/10/rolling/float/1/subfed"])
        self.assertEqual(m["machine"]["memcpy GB/s, 1 thread"], 8.0)
        self.assertIn("8.0 GB/s with 1 thread; reading 1 GiB alone, 4.0 GB/s with 2 threads.",
                      report.machine(m))
        self.assertEqual(m["growth"]["growth/clients/10/rolling/one pass"]["peak_MB"], 3)
        self.assertEqual(m["times"], {"planning/draw/rolling": "2 ms"})
        self.assertEqual(m["compile"], {"all": {"s": 1.5, "ratio": 2.5}})
        for make in report.TABLES.values():
            self.assertTrue(make(m).endswith("\n"))


if __name__ == "__main__":
    unittest.main()
