"""The structure of the package: modules import one another without circles, and no file outgrows its reader."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    name: ROOT / folder / name
    for folder, name in (
        ("src", "podium"),
        ("lab/src", "podium_lab"),
        ("research/src", "podium_research"),
        ("testing/src", "podium_testing"),
    )
}
FILES = [path for name in PACKAGES for path in PACKAGES[name].rglob("*.py")]
LONGEST = 400
LONGEST_NAME = 70  # Of a test, in characters.


@pytest.mark.parametrize("name", PACKAGES)
def test_no_modules_import_one_another_in_a_circle(name: str) -> None:
    graph = grimp.build_graph(name, cache_dir=None)
    above = PACKAGES[name].parent
    packages = {module for module in graph.modules if (above / Path(*module.split("."))).is_dir()}
    for package in packages:  # Its own file names what its modules export, and they never import it back.
        for importer in graph.find_modules_that_directly_import(package):
            if importer.startswith(f"{package}."):
                graph.remove_import(importer=importer, imported=package)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # Raises an error that names a circle.


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_module_is_longer_than_a_reader_takes_in() -> None:
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in FILES}
    assert {str(path): lines for path, lines in lengths.items() if lines > LONGEST} == {}


def test_no_module_is_named_like_the_standard_library_or_says_nothing() -> None:
    taken = sys.stdlib_module_names | {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    allowed = {"trace", "types", "code", "__main__"}  # The wanted names of packages and workers of Podium.
    named = {path.stem for path in FILES} | {path.parent.name for path in FILES}
    assert named & taken <= allowed


def _assigned(module: ast.Module) -> list[str]:
    """The names to which the top level of a module assigns, once for each assignment."""
    simple = [target for node in module.body if isinstance(node, ast.Assign) for target in node.targets]
    annotated = [node.target for node in module.body if isinstance(node, ast.AnnAssign) and node.value]
    return [target.id for target in (*simple, *annotated) if isinstance(target, ast.Name)]


def test_no_module_gives_a_constant_a_second_value() -> None:
    twice = {
        f"{path}: {name}"
        for path in FILES
        for name, times in Counter(_assigned(tree_of(path))).items()
        if times > 1
    }
    assert twice == set()


def test_no_two_files_of_tests_share_a_name() -> None:
    """Pytest imports the files of its tests by their last name alone, and refuses the second one."""
    folders = (ROOT / folder / "tests" for folder in ("", "lab", "research", "testing"))
    names = Counter(path.name for folder in folders for path in folder.rglob("test_*.py"))
    assert [name for name, files in names.items() if files > 1] == []


def test_names_of_tests_are_read_at_a_glance() -> None:
    names = {
        name
        for folder in ("tests", "lab/tests", "research/tests", "testing/tests", "integrations")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\bdef (test_\w+)", path.read_text(encoding="utf-8"))
    }
    assert len(names) > 1000
    assert {name for name in names if len(name) > LONGEST_NAME} == set()


def test_no_public_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_classes_that_docstrings_and_comments_name_exist() -> None:
    named: dict[str, Path] = {}
    names: set[str] = set()
    for path in FILES:
        code = path.read_text(encoding="utf-8")
        for told in re.findall(r'"""[\s\S]*?"""|(?:^|  )#.*', code, re.MULTILINE):
            named |= dict.fromkeys(re.findall(r"`((?:[A-Z][a-z]+){2,})\b", told), path)
            code = code.replace(told, "")
        names.update(re.findall(r"\w+", code))  # A name may stand in a string too, as a provider's does.
    missing = {name: path for name, path in named.items() if name not in names}
    assert len(named) > 100
    assert not missing
