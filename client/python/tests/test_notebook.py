"""The example notebook, without running it: tests/gpu/notebook does, on a GPU."""

from __future__ import annotations

import ast
import inspect
import json
import pathlib

import pytest

import attune
from attune.following import Following

NOTEBOOK = pathlib.Path(__file__).resolve().parents[1] / "examples/replace_sdpa.ipynb"
# What the notebook's variables hold.
TYPES = {"client": attune.Client, "tuning": Following, "progress": attune.Progress}
MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text())


@pytest.fixture(scope="module")
def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def tree(code):
    """Every cell's code, parsed as one module."""
    return ast.parse("\n".join("".join(cell["source"]) for cell in code))


def uses(tree, owner):
    """The names of what is taken from the variable `owner`."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == owner
    }


def calls(tree, owner):
    """The calls of methods of the variable `owner`."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == owner
    ]


def test_it_is_a_notebook_of_format_4_5(notebook):
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert {"cells", "metadata"} <= notebook.keys()
    for cell in notebook["cells"]:
        required = {"id", "cell_type", "metadata", "source"}
        assert required | ({"outputs", "execution_count"} if cell["cell_type"] == "code" else set()) == cell.keys()
        assert cell["cell_type"] in ("code", "markdown")


def test_cells_have_names_of_their_own(notebook):
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)


def test_every_code_cell_compiles(code):
    for cell in code:
        compile("".join(cell["source"]), cell["id"], "exec")


def test_it_was_run_from_top_to_bottom_or_not_at_all(code):
    counts = [cell["execution_count"] for cell in code]
    assert counts in ([*range(1, len(code) + 1)], [None] * len(code))


def test_it_ends_without_an_error(code):
    assert "error" not in [output["output_type"] for cell in code for output in cell["outputs"]]


def test_its_pictures_are_small():
    assert NOTEBOOK.stat().st_size < MOST_BYTES


def test_the_names_it_takes_from_attune_exist(tree):
    names = uses(tree, "attune")
    assert "replace_sdpa" in names
    assert names <= {*attune.__all__}


@pytest.mark.parametrize("variable", TYPES)
def test_its_variables_have_what_it_asks_of_them(tree, variable):
    assert uses(tree, variable)
    assert [name for name in uses(tree, variable) if not hasattr(TYPES[variable], name)] == []


def test_the_clients_methods_take_the_arguments_it_gives(tree):
    for call in calls(tree, "client"):
        method = inspect.signature(getattr(attune.Client, call.func.attr))
        method.bind(None, *call.args, **{keyword.arg: keyword.value for keyword in call.keywords})


def test_its_links_lead_somewhere(notebook):
    text = "".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    targets = [link.partition(")")[0] for link in text.split("](")[1:]]
    assert targets
    assert [target for target in targets if not (NOTEBOOK.parent / target).exists()] == []
