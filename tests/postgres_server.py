"""A real PostgreSQL on a free port of loopback, for tests: made, started, stopped, and gone with them.

Where none is installed `DATABASES` says so, and what is claimed of every database is held by SQLite alone; CI
installs it. As root, which PostgreSQL refuses, it runs as nobody.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from free_port import free_port

USER = "podium"
PASSWORD = "s3cret/of:the@database%41"
"""With every letter that has a meaning in an address."""
_PATIENCE_S = 60.0
_UNTIL_LET_GO = '"$@" & server=$!; read -r _; kill -INT "$server"; wait "$server"'
"""A shell that ends the server when its input ends, and so also when the tests are killed."""


def _find() -> Path | None:
    """The folder with PostgreSQL's programs, of the newest there is."""
    installed = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(installed, key=lambda path: float(path.parts[-3]), default=None)
    found = newest or shutil.which("postgres")
    folder = None if found is None else Path(found).resolve().parent
    return folder if folder is not None and (folder / "initdb").exists() else None


PROGRAMS = _find()
DATABASES = ("sqlite",) if PROGRAMS is None else ("sqlite", "postgresql")
"""Kinds of databases that there are here: for tests of what both have to do."""


class PostgresServer:
    """One server with databases of its own; `start` and `stop` may alternate, and it keeps its port."""

    def __init__(self) -> None:
        assert PROGRAMS is not None, "there is no PostgreSQL here"
        self._programs = PROGRAMS
        # Not below pytest's folder, which its owner alone may enter; and sockets have short names.
        self.folder = Path(tempfile.mkdtemp(prefix="podium-pg-", dir="/tmp"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self.port = free_port()
        self._shell: subprocess.Popen[bytes] | None = None
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run("initdb", "--no-sync", "--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}",
                  "--encoding=UTF8", "--locale=C", "--pgdata", str(self.folder / "data"))  # fmt: skip
        version = int(self._run("postgres", "--version").split()[2].partition(".")[0])
        # Half the work of what writes each page into the log; before version 15 there was no other way.
        self._strategy = "STRATEGY file_copy" if version >= 15 else ""

    def url(self, database: str = "postgres", *, password: str = PASSWORD) -> str:
        """The address of a database, as `--store` takes it."""
        return f"postgresql://{USER}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a new, empty database."""
        name = f"podium_{uuid4().hex[:12]}"
        self.psql(f"CREATE DATABASE {name} {self._strategy}")
        return self.url(name)

    def psql(self, statement: str, database: str = "postgres") -> str:
        """What a statement answers, as text."""
        place = ["--host=127.0.0.1", f"--port={self.port}", f"--username={USER}", f"--dbname={database}"]
        return self._run("psql", *place, "--no-psqlrc", "--tuples-only", "--no-align", "--command", statement)

    def start(self) -> None:
        """Returns when connections are accepted."""
        assert self._shell is None
        command = [
            str(self._programs / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port),
            "-k", str(self.folder), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off",
            "-c", "log_min_messages=fatal",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _UNTIL_LET_GO, "sh", *command],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.folder, **self._as,
            )  # fmt: skip
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.psql("SELECT 1")
                return
            except subprocess.CalledProcessError as error:
                if self._shell.poll() is not None or time.monotonic() > deadline:
                    log_text = (self.folder / "log").read_text()
                    raise RuntimeError(f"PostgreSQL did not start: {error.stderr}\n{log_text}") from error
                time.sleep(0.05)

    def stop(self) -> None:
        """End the server, with its connections. Calling twice is fine."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        assert shell.stdin is not None
        shell.stdin.write(b"\n")
        shell.stdin.close()
        shell.wait(_PATIENCE_S)

    def close(self) -> None:
        """End the server and take away all that it kept."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            check=True, capture_output=True, text=True, cwd=self.folder, timeout=_PATIENCE_S,
            env={"PATH": os.environ.get("PATH", ""), "PGPASSWORD": PASSWORD, "LC_ALL": "C"}, **self._as,
        )  # fmt: skip
        return done.stdout.strip()
