"""Tables of people for tests of the command line."""

from pathlib import Path

import numpy as np


def people(path, n=120, seed=0):
    """A CSV of people, of whom the older and richer buy."""
    rng = np.random.default_rng(seed)
    age, income = rng.integers(18, 80, n), rng.normal(40, 12, n).round(2)
    color = rng.choice(["red", "green"], n)
    bought = np.where(age + income + rng.normal(0, 5, n) > 90, "yes", "no")
    lines = [
        f"{k},{a},{i},{c},{b}"
        for k, (a, i, c, b) in enumerate(zip(age, income, color, bought, strict=True))
    ]
    table(path, lines)
    return lines


def contents(folder):
    """All files but the lock, which names the last process, and SQLite's log."""
    left_out = ("lock", "ledger.sqlite-shm", "ledger.sqlite-wal")
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in left_out]
    return [(path, path.read_bytes()) for path in sorted(files)]


def declared(columns, target="y", more=""):
    """The name of a file here that declares a store: columns of numbers, or by their facts."""
    if isinstance(columns, str):
        columns = dict.fromkeys(columns.split(","), 'kind = "number"')
    lines = ["[table.columns]", *(f'"{name}" = {{ {said} }}' for name, said in columns.items())]
    if target:
        lines += ["[target]", target if "=" in target else f'column = "{target}"']
    Path("model.toml").write_text("\n".join([*lines, more]))
    return "model.toml"


def table(path, lines, header="id,age,income,color,bought"):
    path.write_text("\n".join([header, *lines]) + "\n")
    return path
