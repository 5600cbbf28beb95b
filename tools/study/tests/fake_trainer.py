#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stands in for the trainer: takes its options, writes its files, trains nothing.

FAKE_FAILS is a method that fails, FAKE_WAITS a method that works until it is told to end and is done
when it is resumed. Every start is a line in FAKE_LOG."""
import os
import signal
import sys
import time
from pathlib import Path

words, options = sys.argv[1:], {}
while words:
    name = words.pop(0).removeprefix("--")
    options[name] = words.pop(0) if words and not words[0].startswith("--") else "true"
method, seed, rounds = options["method"], int(options["seed"]), int(options["rounds"])
folder = Path(options["out"])
with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
    log.write(f"{method} {seed} {options.get('labels', '-')}\n")
if method == os.environ.get("FAKE_FAILS"):
    print("fake: out of luck")
    sys.exit(3)
checkpoint = folder / "checkpoint"
if method == os.environ.get("FAKE_WAITS") and not checkpoint.exists():
    def end(*_):
        checkpoint.write_text("half-way")
        sys.exit(1)
    signal.signal(signal.SIGTERM, end)
    (folder / "waiting").write_text("")
    while True:
        time.sleep(0.01)

accuracy = 0.5 + 0.01 * seed + (0.1 if method == "fedrolex" else 0)
(folder / f"{method}.csv").write_text(
    "round,accuracy,test_loss,local_accuracy,train_loss\n"
    f"{rounds // 2},{accuracy / 2:.6f},1,{accuracy:.6f},1\n"
    f"{rounds},{accuracy:.6f},1,{accuracy + 0.1:.6f},1\n")
(folder / f"{method}-nodes.csv").write_text("node,held_by_all,held_by_cut\n0,3,1\n1,1,1\n")
(folder / "costs.csv").write_text(
    "method,client_flops,bytes_per_round\n" f"{method},1000000,2000000\n")
if options.get("labels") == "5":  # as a newer trainer
    (folder / f"{method}-clients.csv").write_text("client,local_accuracy\n0,0.75\n1,0.25\n2,nan\n")
    (folder / f"{method}-capacities.csv").write_text("capacity,accuracy\n1,0.6\n0.5,0.4\n")
    (folder / f"{method}-keep.csv").write_text(f"round,0.50,0.75,1.00\n2,0,4,0\n4,0,{seed},1\n")
