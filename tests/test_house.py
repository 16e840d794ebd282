"""How large the house is, counted in code lines, names, commands, pages and imports.

    python tests/test_house.py

A code line has something other than a docstring, a comment or nothing on it. The chain is that of
imports at the top of modules, which Python follows one inside the other.
"""

import ast
import io
import sys
import tokenize
import tomllib
from functools import cache
from pathlib import Path

import traceless

LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
}


def code_lines(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = [range(t.start[0], t.end[0] + 1) for t in tokens if t.type not in LAYOUT]
    found = {line for span in spans for line in span}
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(node, body[0]):
            found -= set(range(body[0].lineno, body[0].end_lineno + 1))
    return len(found)


def _is_text(node, first):
    described = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    value = getattr(first, "value", None)
    return (
        isinstance(node, described)
        and isinstance(first, ast.Expr)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, str)
    )


def imports(path, known):
    """Modules of the package that are imported when this one is."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def longest_chain(folder):
    named = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        named[".".join(p for p in parts if p != "__init__")] = path

    @cache
    def chain(module):
        inner = {name for name in imports(named[module], named) if name in named}
        return [module, *max((chain(name) for name in inner - {module}), key=len, default=[])]

    return max((chain(module) for module in named), key=len)


def lines_of(folder):
    return sum(code_lines(path.read_text()) for path in folder.rglob("*.py"))


def measured():
    from traceless.cli.group import root

    package = Path(traceless.__file__).parent
    repository, chain = package.parents[1], longest_chain(package)
    rooms = sorted(path for path in package.iterdir() if (path / "__init__.py").is_file())
    return {
        **{room.name: lines_of(room) for room in rooms},
        "wheel": lines_of(package),
        "tests": lines_of(repository / "tests"),
        "modules at the root": len(list(package.glob("*.py"))),
        "names at the root": len(traceless.__all__),
        "commands": len(root.commands),
        "pages of docs": len(list((repository / "docs").glob("*.md"))),
        "longest import chain": len(chain),
        "which is": " > ".join(chain),
    }


BOUNDS = {
    "wheel": 23_710,  # a model that follows a table; a desk in the browser
    "tests": 25_900,  # what a browser, a table's history and a power cut may do
    "modules at the root": 6,
    "names at the root": 27,
    "commands": 20,
    "pages of docs": 28,
    "longest import chain": 15,
}


def test_the_house_does_not_grow_in_silence():
    """Whoever adds a way removes the one it betters; who needs more room says why."""
    found = measured()
    assert {name: found[name] for name in BOUNDS if found[name] > BOUNDS[name]} == {}, found


def test_imports_point_down_through_ten_layers():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
    assert len(contract["layers"]) <= 10
    assert not contract.get("ignore_imports")


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}: {n}\n" for name, n in measured().items()))
