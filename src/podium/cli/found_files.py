"""The files of a settings file that was found and not named: itself, and all that it refers to and that can act.

Each is read once. `trust` compares their digests with what the user trusted, and pools are built from the very
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
from pathlib import Path
from typing import Any

from podium.config import read_file
from podium.errors import UsageError

FILE = "team.toml"
"""The file of the working folder that commands find."""
_DATA_KEYS = frozenset({"store", "cache", "recording", "ratings"})
"""Keys whose files hold data alone. They change with use, and a change of one asks for no new trust."""
_TABLE_KEYS = frozenset({"file", "files", "tasks"})
"""Keys whose files hold data alone if they are tables of questions or recordings."""
_PACKAGE = Path(__file__).parent.parent
_MAX_BYTES = 2**28
_MAX_FILES = 256


class FoundFiles:
    """A settings file and all that it refers to, as they were read.

    A file that another one names counts if it exists: a pool and the pools in it, task files, the podium.json of a
    Conductor, the programs and scripts of `command` workers, the modules of `python` workers. What a program or a
    module opens in turn does not.

    Args:
        path: the settings file, as the user sees it.
        content: of the settings file, where it has been read already.
    """

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = path
        self.toml: dict[Path, bytes] = {}
        """The settings file and the TOML files behind it, also files of the package, by absolute path."""
        self.digests: dict[str, str] = {}
        """SHA-256 of each file by its real path. Files of the package are left out."""
        self._effects: dict[str, None] = {}
        self._queue = deque([(path, True)])  # No recursion: files may name one another in a long chain.
        seen: set[tuple[Path, bool]] = set()
        while self._queue:
            file, is_toml = self._queue.popleft()
            if (file.absolute(), is_toml) not in seen:
                seen.add((file.absolute(), is_toml))
                self._take(file, is_toml, content)
            content = None

    @property
    def effects(self) -> tuple[str, ...]:
        """What the files would do, in words: "calls URL with $KEY", "runs ./tool.sh"."""
        return tuple(self._effects)

    @property
    def open_to_others(self) -> tuple[str, ...]:
        """The files that other users of this machine can change, themselves or by their folder."""
        return tuple(name for name in self.digests if _others_can_change(Path(name)))

    def _take(self, path: Path, is_toml: bool, content: bytes | None) -> None:
        """Take in a file, and note those that it refers to. A path where no regular file is says nothing."""
        # Read by the real path: a link that is led elsewhere meanwhile cannot give its content another file's name.
        real = os.path.realpath(path) if content is not None or os.path.isfile(path) else ""
        content = read_regular(Path(real)) if content is None else content
        if content is None:
            return
        if not Path(real).is_relative_to(os.path.realpath(_PACKAGE)):
            digest = hashlib.sha256(content).hexdigest()
            if self.digests.setdefault(real, digest) != digest:
                # It is read again where two texts refer to it. What differs then must match no trust.
                self.digests[real] = "changed while it was read"
        if len(self.digests) > _MAX_FILES:
            raise UsageError(
                f"The settings found here refer to more than {_MAX_FILES} files; leave some out."
            )
        if is_toml:
            self.toml[path.absolute()] = content
            try:
                tables = tomllib.loads(content.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                return  # Whoever uses the file refuses it, with the line.
            self._follow(tables, path.parent)

    def _follow(self, value: Any, folder: Path, key: str = "") -> None:
        if isinstance(value, Mapping):
            self._effects |= dict.fromkeys(_describe_effects(value))
            for name, item in value.items():
                if value.get("kind") == "gguf" and name == "file":
                    continue  # Weights run nothing, and take seconds to read.
                programs = name == "command" and isinstance(value.get("folder"), str)
                self._follow(item, folder / value["folder"] if programs else folder, name)
            self._add_module(value, folder)
        elif isinstance(value, list):
            for item in value:
                self._follow(item, folder, key)
        elif isinstance(value, str) and value and key not in _DATA_KEYS:
            from podium.files.tables import is_table  # noqa: PLC0415 - not loaded where a found file only sets limits
            from podium.workers.pool import pool_file  # noqa: PLC0415 - the same

            path = pool_file(value, folder) if key == "pool" else folder / value
            if key == "task" and "@" in value:
                path = folder / value.rpartition("@")[0]
            if os.path.isdir(path):
                path /= "podium.json"
            if not (key in _TABLE_KEYS and is_table(path)):
                self._queue.append((path, key == "pool" or path.suffix == ".toml"))

    def _add_module(self, table: Mapping[str, Any], folder: Path) -> None:
        function, path = table.get("callable"), table.get("path")
        if isinstance(function, str) and isinstance(path, str):
            module = folder / path
            for part in function.partition(":")[0].split("."):
                module /= part
                self._queue += ((module.with_name(f"{part}.py"), False), (module / "__init__.py", False))


def _describe_effects(table: Mapping[str, Any]) -> Iterator[str]:
    """What a table of any of the files would do that needs trust, in words."""
    texts = {key: value for key, value in table.items() if isinstance(value, str)}
    variables = [value for key, value in texts.items() if key.endswith("key_env")]
    for setting in (table.get("env"), table.get("headers_env")):
        variables += (
            setting.values() if isinstance(setting, Mapping) else setting if isinstance(setting, list) else ()
        )
    effects = [f"calls {value}" for key, value in texts.items() if key.endswith("url")]
    match texts:
        case {"kind": "gguf"}:
            effects.append(f"loads the model {texts.get('file', '')}")
        case {"kind": "litellm"}:
            effects.append(f"calls {texts.get('model', '')} by litellm")
        case {"set": "inspect"}:
            effects.append(f"imports the Inspect task {texts.get('task', '')}")
    if isinstance(command := table.get("command"), list):
        effects.append(f"runs {shlex.join(map(str, command))}")
    if "callable" in texts:
        effects.append(f"imports {texts['callable']}")
    if table.get("allow_weak_sandbox") is True:
        effects.append("runs models' programs without isolation")
    names = " and ".join(f"${name}" for name in variables)
    yield from (f"{effect} with {names}" if names else effect for effect in effects)
    if names and not effects:
        yield f"reads {names}"


def read_regular(path: Path) -> bytes | None:
    """The bytes of a regular file, or None if there is none or it cannot be read."""
    if not os.path.isfile(path):
        return None
    try:
        return read_file(path, _MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UsageError(
                f"{path} is larger than {_MAX_BYTES // 2**20} MiB, too large for a file to trust."
            ) from None
        return None


def _others_can_change(path: Path) -> bool:
    for entry in (path, path.parent):
        status = entry.stat()
        open_to_all = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if open_to_all or status.st_uid not in (0, os.geteuid()):
            return True
    return False
