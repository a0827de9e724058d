"""A certificate that nobody trusts, made for one server and deleted with it.

Made by the openssl program: the standard library reads certificates and makes none.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from podium.errors import ConfigError
from podium.testing.port import HOST


@asynccontextmanager
async def self_signed() -> AsyncIterator[tuple[ssl.SSLContext, Path]]:
    """What a server on loopback encrypts with, and the certificate's file (PEM), for a client that is to trust it.

    Raises:
        ConfigError: there is no openssl program, or it makes no certificate.
    """
    program = shutil.which("openssl")
    if program is None:
        raise ConfigError(
            "FaultServer(tls=True) needs the openssl program, which is not on the PATH; install it, or ask https_url "
            "of a server without TLS, where every handshake fails."
        )
    with TemporaryDirectory(prefix="podium-testing-") as folder:
        key, certificate = Path(folder, "key.pem"), Path(folder, "certificate.pem")
        await _run(
            *(program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", str(key), "-out", str(certificate)),
            *("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        yield context, certificate


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode:
        last = said.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise ConfigError(f"openssl made no certificate ({last[0]}); use version 1.1.1 or later.")
