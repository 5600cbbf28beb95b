# SPDX-License-Identifier: MIT
"""The stubs say what there is, with its arguments, and everything has a docstring."""
import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import subfed
from subfed import models, theory

FOLDER = pathlib.Path(subfed.__file__).parent


def stub(name):
    return ast.parse((FOLDER / f"{name}.pyi").read_text())


def members(tree):
    return {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def arguments(node):
    return [a.arg for a in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]


def called(function):
    """Names of a bound function's arguments, from its docstring's first line."""
    text = (function.__doc__ or "").splitlines()[0]
    inside = re.fullmatch(r"\w+\((.*)\) -> .*", text).group(1)
    return re.findall(r"(?:^|, )\*{0,2}(\w+): |(?:^|, )\*(?:args|kwargs)", inside)


MODULES = [("__init__", subfed), ("theory", theory), ("models", models)]


@pytest.mark.parametrize("name, module", MODULES, ids=[m[0] for m in MODULES])
def test_stubs_name_what_there_is(name, module):
    stubbed = members(stub(name))
    there = {n for n, v in vars(module).items() if callable(v) and not n.startswith("_")}
    there -= {"Model"} if module is models else set()
    assert {n for n in stubbed if not n.startswith("_")} - {"ServerStepReport", "DerivedModel"} == there
    assert module is not subfed or set(subfed.__all__) == there | {"models", "theory"}
    for class_name, node in stubbed.items():
        if not isinstance(node, ast.ClassDef) or class_name.startswith("_"):
            continue
        if class_name in ("Error", "Layer", "ServerStepReport", "DerivedModel"):
            continue
        own = members(node)
        for base in node.bases:
            own = {**members(stubbed[base.id]), **own}
        public = {n for n in vars(getattr(module, class_name)) if not n.startswith("_")}
        assert {n for n in own if not n.startswith("_")} == public, class_name


@pytest.mark.parametrize("name, module", MODULES[:2], ids=[m[0] for m in MODULES[:2]])
def test_stubs_have_the_arguments_that_there_are_and_none_is_nameless(name, module):
    seen = 0
    for function_name, node in members(stub(name)).items():
        if isinstance(node, ast.FunctionDef):
            pairs = [(node, getattr(module, function_name))]
        elif not hasattr(module, function_name) or function_name in ("Error", "Layer"):
            continue
        else:
            of = getattr(module, function_name)
            pairs = [(n, vars(of)[m]) for m, n in members(node).items()
                     if m in vars(of) and not isinstance(vars(of)[m], property)
                     and m != "_repr_html_"]
        for n, function in pairs:
            function = getattr(function, "__func__", function)
            doc = function.__doc__ or ""
            assert "arg0" not in doc, doc
            if "Overloaded function" in doc or not re.match(r"\w+\(", doc):
                continue
            expected = [a for a in arguments(n) if a != "self"]
            if "**kwargs" in doc.splitlines()[0]:
                expected = [a for a in expected if a in ("net", "updates", "globals", "held", "threads")]
            found = [a for a in called(function) if a not in ("", "self")]
            assert found == expected, f"{function_name}.{n.name}"
            seen += 1
    assert seen > 10


def test_everything_has_a_docstring_that_says_what_it_is():
    bare = []
    for module in (subfed, theory, models):
        for name, value in vars(module).items():
            if name.startswith("_") or not callable(value) or value is subfed.Layer:
                continue
            doc = (value.__doc__ or "")
            if re.match(r"\w+\(", doc):
                doc = doc.partition("\n")[2]
            if not doc.strip():
                bare.append(name)
    assert bare == []


def test_mypy_takes_the_stubs_and_sees_mistakes(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "good.py").write_text(textwrap.dedent("""
        import numpy as np
        import subfed

        net = subfed.Model()
        hidden = net.group("hidden", 4)
        fc = net.linear("fc", 3, hidden, bias=False)
        sub = subfed.draw(net, subfed.Rolling(walk="backward"), round=3, capacity=0.5)
        other = subfed.draw(net, lambda request: range(request.kept()), client=2)
        report = subfed.average_cohort(net, [(sub, {"fc.weight": np.zeros(sub.shape("fc.weight"))})],
                                       {"fc.weight": np.zeros((4, 3))}, threads=2, integers="max")
        held: int = report.held
        mean, variance = subfed.theory.rounds_until_chosen(10)
        scores = subfed.node_norms(net, {"fc.weight": np.ones((4, 3))}, "one")
        best = subfed.draw(net, subfed.TopK(scores), capacity=0.5)
        proof = subfed.prove_description(subfed.Model.read(net.to_json()), lambda t: t["fc.weight"] @ np.ones(3))
        advice: str = proof.broken[0].advice[0]
        """))
    (tmp_path / "bad.py").write_text(textwrap.dedent("""
        import subfed

        net = subfed.models.mlp([3, 4, 2])
        subfed.Rolling(walk="sideways")
        subfed.draw(net, subfed.Rolling(), rnd=3)
        net.group(3, "hidden")
        """))
    path = "" if FOLDER.parent.name == "site-packages" else str(FOLDER.parent)  # where mypy looks anyway
    run = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--strict",
                          str(tmp_path / "good.py"), str(tmp_path / "bad.py")], capture_output=True,
                         text=True, env={**os.environ, "MYPYPATH": path, "LD_PRELOAD": ""})
    assert "good.py" not in run.stdout + run.stderr, run.stdout + run.stderr
    assert len(re.findall(r"bad.py:\d+: error", run.stdout)) >= 3, run.stdout + run.stderr


def test_the_package_is_typed():
    assert (FOLDER / "py.typed").exists()
    assert inspect.getdoc(subfed)
