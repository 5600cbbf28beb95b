# SPDX-License-Identifier: MIT
"""Runs trainers, so many at a time, until all are done or somebody stops it."""
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from description import Refusal
from results import read_run


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


class _Process:
    """A trainer at work. Its processor time adds up over interruptions."""

    def __init__(self, command, place, folder):
        self.place, self.folder, self.log = place, folder, folder.with_suffix(".log")
        folder.mkdir(parents=True, exist_ok=True)
        self.began = time.monotonic()
        with open(self.log, "wb") as log:
            # A group of its own: ctrl-C reaches this program, which then asks the trainers to end.
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, process_group=0)

    def ended(self, block=False):
        """The exit status, None while it runs."""
        pid, status, usage = os.wait4(self.process.pid, 0 if block else os.WNOHANG)
        if pid == 0:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        beside = self.folder.with_suffix(".seconds")
        before = float(beside.read_text()) if beside.exists() else 0
        self.seconds = before + usage.ru_utime + usage.ru_stime
        beside.write_text(f"{self.seconds:.1f}\n")
        return self.process.returncode

    def last_line(self):
        lines = self.log.read_text(errors="replace").replace("\r", "\n").split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        return lines[-1] if lines else "it printed nothing"


class _Line:
    """One line that is rewritten on a terminal; elsewhere only what is final."""

    def __init__(self, stream):
        self.stream, self.live = stream, stream.isatty()

    def show(self, text):
        if self.live:
            columns = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\033[K" + text[:columns])
            self.stream.flush()

    def keep(self, text):
        self.stream.write(("\r\033[K" if self.live else "") + text + "\n")
        self.stream.flush()


class Runner:
    def __init__(self, results, owners, trainer, work, jobs, threads, version):
        self.results, self.owners = results, owners
        self.trainer, self.work = trainer, Path(work)
        self.jobs, self.version = jobs, version
        self.threads = threads or max(1, (os.cpu_count() or 1) // jobs)
        self.spent = self.trained = 0.0  # seconds and units of this session
        self.stopped = False

    def _rate(self):
        """Seconds for a unit, as measured now, else as the results have it."""
        if self.trained:
            return self.spent / self.trained
        known = self.results.seconds_of_unit(self.owners)
        return None if known is None else known / self.threads

    def left(self, waiting, running):
        """Time left as text."""
        rate = self._rate()
        if rate is None:
            return "time left is not known yet"
        now = time.monotonic()
        seconds = sum(p.run.units * rate for p in waiting)
        seconds += sum(max(0.0, r.place.run.units * rate - (now - r.began)) for r in running)
        return f"{_clock(seconds / self.jobs)} left"

    def _start(self, place):
        folder = self.work / place.run.key
        command = [str(self.trainer), *place.run.words, "--threads", str(self.threads),
                   "--resume", "--out", str(folder)]
        return _Process(command, place, folder)

    def _finish(self, done, status):
        """Why a run has failed; empty where it has not."""
        if status != 0:
            return (f"{done.last_line()} (status {status}, {done.log}; without the folder "
                    f"{done.folder.name} beside it the run starts over)")
        try:
            cells, curve, keep = read_run(done.folder, done.place.run)
        except (OSError, Refusal, KeyError, ValueError, StopIteration) as error:
            return f"its results cannot be read: {error!r} ({done.folder})"
        cells |= {"seconds": f"{done.seconds:.1f}", "version": self.version}
        self.results.add(self.owners[done.place.run.key], cells, curve, keep)
        self.spent += time.monotonic() - done.began
        self.trained += done.place.run.units
        # What is left is as good as nothing: the row has it.
        shutil.rmtree(done.folder)
        for ending in (".log", ".seconds"):
            done.folder.with_suffix(ending).unlink(missing_ok=True)
        return ""

    def run(self, places, stream=sys.stderr):
        """The names of the runs that have failed."""
        line, waiting, running, failed, done = _Line(stream), list(places), [], [], 0
        total, shown = len(waiting), 0.0

        def stop(*_):
            self.stopped = True
        before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            while (waiting or running) and not self.stopped:
                while waiting and len(running) < self.jobs:
                    running.append(self._start(waiting.pop(0)))
                for process in list(running):
                    status = process.ended()
                    if status is None:
                        continue
                    running.remove(process)
                    why = self._finish(process, status)
                    if why:
                        failed.append(process.place.name)
                        line.keep(f"{process.place.name} failed: {why}")
                        continue
                    done += 1
                    row = self.results.of(process.place)
                    line.keep(f"{process.place.name}: {row.accuracy:.2f} %, {row.seconds:.0f} s; "
                              f"{done} of {total} runs, {self.left(waiting, running)}")
                if line.live and time.monotonic() >= shown + 1:
                    shown = time.monotonic()
                    names = ", ".join(r.place.name for r in running)
                    line.show(f"{done} of {total} runs, {self.left(waiting, running)}; now {names}")
                # Longer pauses for longer runs: they take no time from the trainers.
                if running and not self.stopped:
                    youngest = time.monotonic() - max(r.began for r in running)
                    time.sleep(min(0.5, max(0.02, 0.05 * youngest)))
            for process in running:
                process.process.terminate()
            for process in running:
                process.ended(block=True)
        finally:
            for s, handler in before.items():
                signal.signal(s, handler)
        if self.stopped:
            line.keep("Stopped. The same command continues.")
        return failed
