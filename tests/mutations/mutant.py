"""A step of the protocol and what is left when it is taken away, found by the names in the code.

A mutant names a function by the end of its full name (`decide.check_topics`, `Ownership._look`) and
what happens in it. Moving the function, or writing its lines in another way, does not break the
mutant. Where a name is gone, or fits more than one place, `apply` says so.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = "spark_eos"

SIMULATION = "tests/simulation"
REAL_LOG = "tests/integration/test_log_append.py"
POWER_CUT = "tests/integration/test_log_power_cut.py"
OTHER_CLUSTER = "tests/integration/test_other_cluster.py"
VERSIONS = "tests/integration/test_versions.py"
SAME_ROWS = "tests/unit/protocol/test_version.py"

# What is replaced, and by which text.
Edit = tuple[ast.AST, str]
Change = Callable[[ast.AST], list[Edit]]


@dataclass(frozen=True)
class Mutant:
    """`place` is a function, or a module where a constant of it changes. `tests` must notice."""

    name: str
    place: str
    changes: tuple[Change, ...]
    tests: str = SIMULATION

    @property
    def file(self) -> str:
        """The file of the place, below the project's folder."""
        found = [file for full, file in _places() if f".{full}".endswith(f".{self.place}")]
        assert len(found) == 1, f"{self.name}: {self.place} is there {len(found)} times"
        return found[0]

    def apply(self, text: str) -> str:
        """The file's text with the changes."""
        (node,) = (
            node
            for full, node in _functions(_module_of(self.file), ast.parse(text))
            if f".{full}".endswith(f".{self.place}")
        )
        for change in self.changes:
            edits = change(node)
            assert len(edits) == 1, f"{self.name}: fits {len(edits)} places in {self.place}"
            text = _replaced(text, edits)
            node = next(
                n
                for full, n in _functions(_module_of(self.file), ast.parse(text))
                if f".{full}".endswith(f".{self.place}")
            )
        return text


def mutant(name: str, place: str, *changes: Change, tests: str = SIMULATION) -> Mutant:
    return Mutant(name, place, changes, tests)


def without(callee: str) -> Change:
    """The statement that calls `callee` is not there."""
    return lambda place: [
        (statement, "pass")
        for statement in ast.walk(place)
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and _called(statement.value) == callee
    ]


def call(callee: str, instead: str) -> Change:
    """The call of `callee` is replaced by another expression."""
    return lambda place: [(found, instead) for found in _calls(place, callee)]


def before(callee: str, code: str) -> Change:
    """`code` runs before the statement that calls `callee`."""

    def change(place: ast.AST) -> list[Edit]:
        found = [s for s in _statements(place) if any(_calls(s, callee))]
        smallest = [s for s in found if not any(o is not s and _is_inside(o, s) for o in found)]
        return [(s, f"{code}\n{ast.unparse(s)}") for s in smallest]

    return change


def argument(callee: str, name: str | int, instead: str | None) -> Change:
    """`callee` gets another argument, or does not get it: a keyword, or one by its position."""

    def change(place: ast.AST) -> list[Edit]:
        edits: list[Edit] = []
        for found in _calls(place, callee):
            args, keywords = list(found.args), list(found.keywords)
            if isinstance(name, int):
                args[name : name + 1] = [] if instead is None else [_expression(instead)]
            else:
                assert any(k.arg == name for k in keywords), f"{callee} has no argument {name}"
                keywords = [k for k in keywords if k.arg != name]
                if instead is not None:
                    keywords.append(ast.keyword(name, _expression(instead)))
            edits.append((found, ast.unparse(ast.Call(found.func, args, keywords))))
        return edits

    return change


def assigned(name: str, value: str) -> Change:
    """The variable or constant gets another value."""
    return lambda place: [
        (found.value, value)
        for found in ast.walk(place)
        if isinstance(found, ast.Assign | ast.AnnAssign | ast.AugAssign)
        and found.value is not None
        and any(
            isinstance(target, ast.Name) and target.id == name
            for target in (found.targets if isinstance(found, ast.Assign) else [found.target])
        )
    ]


def returns(value: str) -> Change:
    """The function does nothing, and returns `value`."""

    def change(place: ast.AST) -> list[Edit]:
        assert isinstance(place, ast.FunctionDef)
        first, last = place.body[1 if ast.get_docstring(place) else 0], place.body[-1]
        whole = ast.copy_location(ast.Pass(), first)
        whole.end_lineno, whole.end_col_offset = last.end_lineno, last.end_col_offset
        return [(whole, f"return {value}")]

    return change


def never(*names: str) -> Change:
    """The condition with these names in it does not hold."""
    return _condition(names, "False")


def always(*names: str) -> Change:
    """The condition with these names in it holds."""
    return _condition(names, "True")


def instead(old: str, new: str) -> Change:
    """An expression is replaced by another one; how it is written does not matter."""
    wanted = ast.dump(_expression(old))
    return lambda place: [
        (found, new)
        for found in ast.walk(place)
        if isinstance(found, ast.expr) and ast.dump(found) == wanted
    ]


def without_key(key: str) -> Change:
    """The entry of a dictionary is not there."""

    def change(place: ast.AST) -> list[Edit]:
        edits: list[Edit] = []
        for found in ast.walk(place):
            if not isinstance(found, ast.Dict):
                continue
            pairs = list(zip(found.keys, found.values, strict=True))
            left = [
                (k, v) for k, v in pairs if not (isinstance(k, ast.Constant) and k.value == key)
            ]
            if len(left) < len(pairs):
                rest = ast.Dict([k for k, _ in left], [v for _, v in left])
                edits.append((found, ast.unparse(rest)))
        return edits

    return change


def statement(*names: str, becomes: str) -> Change:
    """The smallest statement with all of these names in it is another one."""

    def change(place: ast.AST) -> list[Edit]:
        found = [s for s in _statements(place) if set(names) <= _names(s)]
        smallest = [s for s in found if not any(o is not s and _is_inside(o, s) for o in found)]
        return [(s, becomes) for s in smallest]

    return change


def _condition(names: tuple[str, ...], value: str) -> Change:
    def change(place: ast.AST) -> list[Edit]:
        found = [c for c in _conditions(place) if set(names) <= _names(c)]
        smallest = [c for c in found if not any(o is not c and _is_inside(o, c) for o in found)]
        return [(c, value) for c in smallest]

    return change


def _conditions(place: ast.AST) -> Iterator[ast.expr]:
    """What is asked: tests, the parts of `and` and `or`, and answers that are true or false."""
    for node in ast.walk(place):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case ast.BoolOp(values=values):
                yield from values
            case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp() as value):
                yield value
            case ast.GeneratorExp(elt=ast.Compare() | ast.BoolOp() as element):
                yield element


def _calls(place: ast.AST, callee: str) -> list[ast.Call]:
    return [n for n in ast.walk(place) if isinstance(n, ast.Call) and _called(n) == callee]


def _called(node: ast.Call) -> str | None:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def _statements(place: ast.AST) -> list[ast.stmt]:
    return [n for n in ast.walk(place) if isinstance(n, ast.stmt) and n is not place]


def _names(node: ast.AST) -> set[str]:
    inside = list(ast.walk(node))
    return {n.id for n in inside if isinstance(n, ast.Name)} | {
        n.attr for n in inside if isinstance(n, ast.Attribute)
    }


def _is_inside(inner: ast.AST, outer: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _replaced(text: str, edits: list[Edit]) -> str:
    """Columns are counted in bytes."""
    ((node, new),) = edits
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    begin = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
    end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
    content = text.encode()
    return (content[:begin] + _inline(node, new).encode() + content[end:]).decode()


def _inline(node: ast.AST, new: str) -> str:
    """An expression in brackets, so that it binds as it stands; a statement's lines indented."""
    if isinstance(node, ast.expr):
        return f"({new})"
    indent = " " * node.col_offset  # type: ignore[attr-defined]
    return new.replace("\n", f"\n{indent}")


@cache
def _places() -> list[tuple[str, str]]:
    """Every module and function of the product by its full name, with its file."""
    found = []
    for path in sorted((ROOT / PRODUCT).rglob("*.py")):
        file = str(path.relative_to(ROOT))
        tree = ast.parse(path.read_text())
        found += [(full, file) for full, _ in _functions(_module_of(file), tree)]
    return found


def _module_of(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


def _functions(prefix: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Module):
        yield prefix, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield f"{prefix}.{child.name}", child
            yield from _functions(f"{prefix}.{child.name}", child)
