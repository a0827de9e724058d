"""The viewer's files: whole, unchanged where they are others', small, and served as they should be."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import httpx
import pytest

from podium.server.viewer import FOLDER

VENDOR = FOLDER / "vendor"
OWN = [path for path in FOLDER.rglob("*") if path.is_file() and VENDOR not in path.parents]
MODULES = [path for path in OWN if path.suffix == ".js"]


def test_files_of_others_are_unchanged_and_all_are_named() -> None:
    rows = re.findall(
        r"^\| (\S+/\S+) \| \S+ \| ([0-9a-f]{64}) \|$", (VENDOR / "VENDORED.md").read_text(), re.M
    )
    there = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VENDORED.md"
    }
    assert dict(rows) == there


def test_every_library_comes_with_its_licence_and_none_is_under_gpl() -> None:
    for folder in VENDOR.iterdir():
        if folder.is_dir():
            licence = (folder / "LICENSE").read_text()
            assert "General Public" not in licence.replace("\n", " ")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_viewer_module_is_short_has_valid_imports_and_writes_no_html(module: Path) -> None:
    text = module.read_text()
    for name in re.findall(r'^(?:import|export) .*?from "([^"]+)";', text, re.M | re.S):
        assert name.startswith("."), f"{name} cannot be found without a build"
        assert (module.parent / name).resolve().is_file(), name
    assert len(text.splitlines()) < 300
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "dangerouslySetInnerHTML",
        "document.write",
        "eval(",
    ):
        assert way not in text


def test_html_enters_the_page_through_one_module_and_one_policy() -> None:
    assert [
        path.name for path in MODULES if "dompurify" in path.read_text().partition("\n\n")[0].lower()
    ] == ["sanitised.js"]
    assert [
        path.name for path in MODULES if re.search(r"createPolicy|DOMParser|setHTML", path.read_text())
    ] == []


def test_every_module_is_used() -> None:
    used = {"app.js", "early_theme.js"}
    for module in MODULES:
        for name in re.findall(r'from "(\.[^"]+)"', module.read_text()):
            used.add((module.parent / name).resolve().relative_to(FOLDER).as_posix())
    assert {path.relative_to(FOLDER).as_posix() for path in MODULES} <= used


def test_the_page_has_no_script_or_style_and_names_no_other_machine() -> None:
    page = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert "<style" not in page
    assert " style=" not in page
    assert [
        path.name for path in OWN if re.search(r"https?://(?!www\.w3\.org/2000/svg)", path.read_text())
    ] == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/viewer/app.js", "text/javascript; charset=utf-8"),
        ("/viewer/vendor/preact/preact.mjs", "text/javascript; charset=utf-8"),
        ("/viewer/vendor/htm/LICENSE", "text/plain; charset=utf-8"),
        ("/viewer/style/base.css", "text/css; charset=utf-8"),
        ("/viewer/icon.svg", "image/svg+xml"),
    ],
)
def test_a_file_is_served_in_its_kind_under_a_strict_policy_and_once(plain_url, path: str, kind: str) -> None:
    with httpx.Client(base_url=plain_url) as client:
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == kind
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert policy.endswith("require-trusted-types-for 'script'; trusted-types dompurify")
        again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        head = client.head(path)
        assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["/viewer/none.js", "/viewer/../app.py", "/viewer/%2e%2e/app.py", "/viewer//etc/passwd", "/viewer/"],
)
def test_unknown_viewer_file_is_not_found(plain_url, path: str) -> None:
    answer = httpx.get(plain_url + path)
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "not_found_error"
