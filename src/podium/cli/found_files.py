"""The files of a settings file that was found and not named: itself, and all that it refers to and that can act.

Each is read once. `trust_store` compares their digests with what the user trusted, and pools are built from the very
bytes that were compared. Programs, modules, task files and podium.json are opened by others later, by their names.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import stat
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from podium.config import read_file
from podium.errors import UsageError

FILE = "team.toml"
"""The file of the working folder that commands find."""
_DATA = frozenset({"store", "cache", "recording", "ratings"})
"""Keys whose files hold data alone. They change with use, and a change of one asks for no new trust."""
_TABLES = frozenset({"file", "files", "tasks"})
"""Keys whose files hold data alone if they are tables of questions or recordings."""
_PACKAGE = Path(__file__).parent.parent
_MOST_BYTES = 2**28
_MOST_FILES = 256


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What was read.

    A file that another one names counts if it exists: a pool and the pools in it, task files, the podium.json of a
    Conductor, the programs and scripts of `command` workers, the modules of `python` workers. What a program or a
    module opens in turn does not.
    """

    path: Path
    """The settings file, as the user sees it."""
    toml: Mapping[Path, bytes]
    """The settings file and the TOML files behind it, also files of the package, by absolute path."""
    digests: Mapping[str, str]
    """SHA-256 of each file by its real path. Files of the package are left out."""
    acts: tuple[str, ...]
    """What they would do, in words: "calls URL with $KEY", "runs ./tool.sh"."""

    @classmethod
    def read(cls, path: Path, content: bytes | None = None) -> Self:
        """Read all files.

        Args:
            content: of the settings file, where it has been read already.

        Raises:
            UsageError: they are too many or too large to be read.
        """
        walk = _Walk()
        walk.visit(path, is_toml=True, content=content)
        while walk.ahead:  # No recursion: files may name one another in a long chain.
            walk.visit(*walk.ahead.popleft())
        return cls(path, walk.toml, walk.digests, tuple(dict.fromkeys(walk.acts)))

    @property
    def key(self) -> str:
        """Where the settings file lies: the real path of its folder, and its name. A link's target is among
        `digests`; the paths in the file are seen from the link's folder."""
        return str(settings_key(self.path))

    @property
    def open_to_others(self) -> tuple[str, ...]:
        """The files that other users of this machine can change, themselves or by their folder."""
        return tuple(name for name in self.digests if _others_can_change(Path(name)))


def settings_key(path: Path) -> Path:
    """The path by which the trust in a settings file is kept."""
    return Path(os.path.realpath(path.parent)) / path.name


@dataclass(slots=True)
class _Walk:
    toml: dict[Path, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)
    seen: set[tuple[Path, bool]] = field(default_factory=set)
    ahead: deque[tuple[Path, bool]] = field(default_factory=deque)
    """Paths to visit, and whether TOML is expected there."""

    def visit(self, path: Path, is_toml: bool, content: bytes | None = None) -> None:
        """Take in a file, and note those that it refers to. A path where no regular file is says nothing."""
        absolute = path.absolute()
        if (absolute, is_toml) in self.seen:
            return
        self.seen.add((absolute, is_toml))
        if content is None and not os.path.isfile(path):
            return
        # Read by the real path: a link that is led elsewhere meanwhile cannot give its content another file's name.
        real = os.path.realpath(path)
        if content is None:
            content = read_regular(Path(real))
        if content is None:
            return
        if not Path(real).is_relative_to(os.path.realpath(_PACKAGE)):
            digest = hashlib.sha256(content).hexdigest()
            if self.digests.setdefault(real, digest) != digest:
                # It is read again where two texts refer to it. What differs then must match no trust.
                self.digests[real] = "changed while it was read"
        if len(self.digests) > _MOST_FILES:
            raise UsageError(
                f"The settings found here refer to more than {_MOST_FILES} files; leave some out."
            )
        if is_toml:
            self.toml[absolute] = content
            try:
                tables = tomllib.loads(content.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                return  # Whoever uses the file refuses it, with the line.
            self._follow(tables, path.parent, "")

    def _follow(self, value: Any, folder: Path, key: str) -> None:
        if isinstance(value, Mapping):
            self.acts += _describe_acts(value)
            for name, item in value.items():
                if value.get("kind") == "gguf" and name == "file":
                    continue  # Weights run nothing, and take seconds to read.
                programs = name == "command" and isinstance(value.get("folder"), str)
                self._follow(item, folder / value["folder"] if programs else folder, name)
            self._add_module(value, folder)
        elif isinstance(value, list):
            for item in value:
                self._follow(item, folder, key)
        elif isinstance(value, str) and value and key not in _DATA:
            from podium.rows import is_table  # noqa: PLC0415 - not loaded where a found file only sets limits
            from podium.workers.pool import pool_file  # noqa: PLC0415 - the same

            path = pool_file(value, folder) if key == "pool" else folder / value
            if key == "task" and "@" in value:
                path = folder / value.rpartition("@")[0]
            if os.path.isdir(path):
                path /= "podium.json"
            if not (key in _TABLES and is_table(path)):
                self.ahead.append((path, key == "pool" or path.suffix == ".toml"))

    def _add_module(self, table: Mapping[str, Any], folder: Path) -> None:
        """Note the module of a Python function, and the packages around it."""
        function, path = table.get("callable"), table.get("path")
        if isinstance(function, str) and isinstance(path, str):
            module = folder / path
            for part in function.partition(":")[0].split("."):
                module /= part
                self.ahead += ((module.with_name(f"{part}.py"), False), (module / "__init__.py", False))


def _describe_acts(table: Mapping[str, Any]) -> Iterator[str]:
    """What a table of any of the files would do that needs trust, in words."""
    texts = {key: value for key, value in table.items() if isinstance(value, str)}
    variables = [f"${value}" for key, value in texts.items() if key.endswith("key_env")]
    for key in ("env", "headers_env"):
        setting = table.get(key)
        names = (
            setting.values() if isinstance(setting, Mapping) else setting if isinstance(setting, list) else ()
        )
        variables += [f"${name}" for name in names]
    given_away = f" with {' and '.join(variables)}" if variables else ""
    urls = [value for key, value in texts.items() if key.endswith("url")]
    does = [f"calls {url}" for url in urls]
    if table.get("kind") == "gguf":
        does.append(f"loads the model {texts.get('file', '')}")
    if table.get("kind") == "litellm":
        does.append(f"calls {texts.get('model', '')} by litellm")
    command = table.get("command")
    if isinstance(command, list):
        does.append(f"runs {shlex.join(map(str, command))}")
    if "callable" in texts:
        does.append(f"imports {texts['callable']}")
    if texts.get("set") == "inspect":
        does.append(f"imports the Inspect task {texts.get('task', '')}")
    if table.get("allow_weak_sandbox") is True:
        does.append("runs models' programs without isolation")
    yield from (f"{deed}{given_away}" for deed in does)
    if variables and not does:
        yield f"reads {' and '.join(variables)}"


def read_regular(path: Path) -> bytes | None:
    """The bytes of a regular file, or None if there is none or it cannot be read.

    Raises:
        UsageError: it is too large.
    """
    if not os.path.isfile(path):
        return None
    try:
        return read_file(path, _MOST_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UsageError(
                f"{path} is larger than {_MOST_BYTES // 2**20} MiB, too large for a file to trust."
            ) from None
        return None


def _others_can_change(path: Path) -> bool:
    for entry in (path, path.parent):
        status = entry.stat()
        open_to_all = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if open_to_all or status.st_uid not in (0, os.geteuid()):
            return True
    return False
