"""Errors: their fields, and the text that is made from them."""

import ast
import pickle
import string
from pathlib import Path

import pytest

from spark_eos import errors
from spark_eos.errors import DataLossError, FencedError, Mistake, OptionError

PRODUCT = Path(errors.__file__).parent
ERRORS = {name for name, found in vars(errors).items() if name.endswith("Error")}


def test_text_is_made_from_the_fields():
    error = FencedError("batch {batch_id} of query {query_id}", batch_id=7, query_id="q")
    assert str(error) == "batch 7 of query q"
    assert (error.batch_id, error.query_id, error.topic) == (7, "q", None)


def test_value_of_a_field_is_no_template():
    assert str(OptionError("topic '{topic}'", topic="{x} {")) == "topic '{x} {'"
    assert str(OptionError("topic '{x'")) == "topic '{x'"


def test_error_travels_between_processes_with_its_fields():
    error = pickle.loads(pickle.dumps(DataLossError("{topic} is gone", topic="orders")))
    assert (str(error), error.topic) == ("orders is gone", "orders")
    several = pickle.loads(pickle.dumps(OptionError.of([Mistake("a", "{"), Mistake("b", "y")])))
    assert [m.option for m in several.mistakes] == ["a", "b"]


def test_error_with_more_text_is_the_same_error():
    error = FencedError("batch {batch_id}", batch_id=7).preceded_by("{nothing} was written: ")
    assert isinstance(error, FencedError)
    assert (str(error), error.batch_id) == ("{nothing} was written: batch 7", 7)


def test_error_of_one_option_is_one_mistake():
    error = OptionError("option {option} is empty", option="topic")
    assert error.mistakes == (Mistake("topic", "option topic is empty"),)


def raised_in(path):
    """Each call that makes an error of this project, and the function that it stands in."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for node in ast.walk(function):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in ERRORS:
                yield node, function


def keys_of(name, function):
    """The keys of the dictionaries that a function gives to a variable; None where unknown."""
    keys = set()
    for node in ast.walk(function):
        is_it = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        if not is_it:
            continue
        if not isinstance(node.value, ast.Dict) or None in node.value.keys:
            return None
        keys |= {key.value for key in node.value.keys}
    return keys or None


@pytest.mark.parametrize("path", sorted(PRODUCT.rglob("*.py")), ids=lambda path: path.stem)
def test_each_template_has_its_fields(path):
    """An error in the text of an error would hide the error."""
    for call, function in raised_in(path):
        template = call.args[0] if call.args else None
        fields = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
        for keyword in call.keywords:
            if keyword.arg is None:
                keys = keys_of(ast.unparse(keyword.value), function)
                fields = None if keys is None or fields is None else fields | keys
        if not call.keywords or fields is None or not isinstance(template, ast.Constant):
            assert not call.keywords or fields is None or not isinstance(template, ast.JoinedStr), (
                f"line {call.lineno}: an f-string with fields"
            )
            continue
        parsed = string.Formatter().parse(template.value)
        named = {name.partition(".")[0].partition("[")[0] for _, name, _, _ in parsed if name}
        assert named <= fields, f"line {call.lineno}: {named - fields}"
        own = {name for name in fields if hasattr(errors.SparkEosError, name)}
        assert all(getattr(errors.SparkEosError, name) is None for name in own), call.lineno
