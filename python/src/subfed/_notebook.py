# SPDX-License-Identifier: MIT
"""What notebooks show of models, submodels and coverage."""
from html import escape


def _table(head, rows):
    cells = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _model(net):
    groups = [(escape(g.name), g.extent, "never" if g.cut == "never" else "") for g in net.groups]
    tensors = [(escape(t.name), t.shape, escape(t.bound_to), "" if t.role == "parameter" else t.role)
               for t in net.tensors]
    return (f"<p>{len(groups)} groups, {len(tensors)} tensors, {net.size} elements</p>"
            + _table(("group", "nodes", "cut"), groups)
            + _table(("tensor", "shape", "bound to", "role"), tensors))


def _bar(values, most):
    """One row of pixels: dark where a node is held often, white where never."""
    values = list(values)
    step = max(1, len(values) // 256)
    shown = [sum(values[i:i + step]) / len(values[i:i + step]) for i in range(0, len(values), step)]
    rects = "".join(
        f'<rect x="{i}" width="1.05" height="12" fill="#1f5fa8" fill-opacity="{v / most if most else 0:.3f}"/>'
        for i, v in enumerate(shown))
    return (f'<svg width="256" height="12" viewBox="0 0 {max(1, len(shown))} 12" '
            f'preserveAspectRatio="none">{rects}</svg>')


def _submodel(sub):
    rows = []
    for g in sub.parent.groups:
        nodes = sub[g.name]
        held = [0] * g.extent
        for _, first, length in nodes.runs:
            held[first:first + length] = [1] * length
        rows.append((escape(g.name), f"{len(nodes)} of {g.extent}", _bar(held, 1)))
    return (f"<p>client {sub.client} in round {sub.round}, {sub.capacity}: {sub.size} of "
            f"{sub.parent.size} elements</p>" + _table(("group", "nodes", "held"), rows))


def _coverage(seen):
    rows = []
    for g in seen.parent.groups:
        counts, s = seen.counts(g.name), seen.summary(g.name)
        rows.append((escape(g.name), g.extent, s.min, f"{s.mean:.4g}", s.max, s.unseen,
                     _bar(counts, s.max)))
    return (f"<p>{seen.rounds} rounds of {seen.clients} clients together</p>"
            + _table(("group", "nodes", "held least", "mean", "most", "never", "nodes by times held"),
                     rows))


def add_to(model, submodel, coverage):
    model._repr_html_ = _model
    submodel._repr_html_ = _submodel
    coverage._repr_html_ = _coverage
