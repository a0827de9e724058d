"""A small hub on the loopback: datasets as the Hugging Face hub serves them, for its own client.

What it answers to what is asked in other ways than these tests ask is not the hub's answer.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

REVISION = "a" * 40


@contextmanager
def serving(
    datasets: Mapping[str, Mapping[str, bytes]], gated: frozenset[str] = frozenset()
) -> Iterator[str]:
    """The address of a hub that has these files of each dataset, and gives those of `gated` to nobody."""

    class Reply(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path.strip("/")
            for name, files in datasets.items():
                about = f"api/datasets/{name}"
                if path in (about, f"{about}/revision/main"):
                    self._json({"id": name, "sha": REVISION, "siblings": [{"rfilename": f} for f in files]})
                elif path.startswith(f"{about}/tree/"):
                    self._json([record_to_sample(file, content) for file, content in files.items()])
                elif path.startswith(f"datasets/{name}/resolve/"):
                    file = path.removeprefix(f"datasets/{name}/resolve/").partition("/")[2]
                    if name in gated:
                        self._refuse(403, "GatedRepo", f"Access to dataset {name} is restricted.")
                    elif file in files:
                        self._file(files[file])
                    else:
                        self._refuse(404, "EntryNotFound", "Entry not found")
                else:
                    continue
                return
            self._refuse(401, "RepoNotFound", "Repository not found")

        do_HEAD = do_GET

        def _json(self, value: object) -> None:
            self._send(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

        def _file(self, content: bytes) -> None:
            self._send(200, {"ETag": f'"{digest(content)}"', "X-Repo-Commit": REVISION}, content)

        def _refuse(self, status: int, code: str, message: str) -> None:
            self._send(status, {"X-Error-Code": code, "X-Error-Message": message}, b"")

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for key, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Reply)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def record_to_sample(file: str, content: bytes) -> dict[str, object]:
    return {"type": "file", "path": file, "size": len(content), "oid": digest(content)}


def digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()
