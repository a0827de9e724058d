"""What programs have tried, one property a row.

Each prints "ESCAPED" where it gets what it wants. In its source stand, in braces: `outside`, a folder of the machine;
`secret`, a file in it; `home`, the user's, and `kept`, what of it Python needs; `port` and `path`, where somebody
listens, by IP and by Unix sockets.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

TRIED = """
def tried(deed):
    try:
        got = deed()
    except BaseException as error:
        return error
    print("ESCAPED", got)
"""


@dataclass(frozen=True)
class Attack:
    name: str
    source: str
    ends: tuple[str, ...] = ("done",)
    """How it may end."""
    weak: bool = False
    """Whether weak isolation stops it too."""


def attack(name: str, source: str, *ends: str, weak: bool = False) -> Attack:
    return Attack(name, TRIED + dedent(source), ends or ("done",), weak)


ATTACKS = (
    attack(
        "leaving folders in folders, deeper than recursion goes",
        """
        import os
        for _ in range(2000):
            os.mkdir("folder")
            os.chdir("folder")
        """,
        weak=True,
    ),
    attack(
        "reading files of the machine",
        """
        tried(lambda: open({secret!r}).read())
        tried(lambda: open("/etc/passwd").read())
        tried(lambda: open("/proc/1/root" + {secret!r}).read())
        """,
    ),
    attack(
        "reading the home folder",
        """
        import os
        for folder, inner, files in os.walk({home!r}):
            if folder.startswith({kept!r}):
                inner.clear()
            elif files:
                print("ESCAPED", folder, files)
        """,
    ),
    attack(
        "writing outside",
        """
        import os
        for folder in ({outside!r}, "/", "/usr", "/etc", "/dev", "/inside", "/proc/sys/kernel", *{kept!r}):
            tried(lambda: open(os.path.join(folder, "written"), "w"))
        tried(lambda: os.mkdir("/written"))
        tried(lambda: open("/proc/sys/kernel/core_pattern", "w").write("x"))
        """,
    ),
    attack(
        "a link to the outside",
        """
        import os
        os.symlink({outside!r}, "link")
        tried(lambda: open("link/written", "w"))
        tried(lambda: os.listdir("link"))
        tried(lambda: os.link({secret!r}, "hard"))
        """,
    ),
    attack(
        "the network",
        """
        import socket
        tried(lambda: socket.create_connection(("127.0.0.1", {port}), 2))
        tried(lambda: socket.getaddrinfo("example.org", 80))
        for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (40, socket.SOCK_STREAM), (16, socket.SOCK_RAW)):
            tried(lambda: socket.socket(family, kind))
        talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        tried(lambda: talk.sendto(b"x", ("192.0.2.1", 9)))
        """,
    ),
    attack(
        "a socket of somebody else",
        """
        import socket
        for path in ({path!r}, "\\0" + {path!r}):
            tried(lambda: socket.socket(socket.AF_UNIX).connect(path))
        """,
    ),
    attack(
        "killing the parent",
        """
        import os, signal
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
            for pid in (os.getppid(), 1):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        try:
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass
        """,
        "done",
        "killed",
    ),
    attack(
        "looking into the parent",
        """
        import os
        for file in ("mem", "environ", "maps", "fd/0", "fd/5"):
            for pid in (os.getppid(), 1):
                tried(lambda: open(f"/proc/{{pid}}/{{file}}", "rb").read(1))
        tried(lambda: open(f"/proc/{{os.getppid()}}/mem", "r+b"))
        """,
    ),
    attack(
        "ptrace",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for request, pid in ((16, os.getppid()), (16, 1), (0x4206, os.getppid()), (0, 0)):
            if libc.ptrace(request, pid, 0, 0) != -1:
                print("ESCAPED", request)
        held = ctypes.create_string_buffer(8)
        place = (ctypes.c_void_p * 2)(ctypes.addressof(held), 8)
        for call in (libc.process_vm_readv, libc.process_vm_writev):
            if call(os.getpid(), place, 1, place, 1, 0) != -1:
                print("ESCAPED", call)
        """,
    ),
    attack(
        "new namespaces",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000):
            if libc.unshare(flag) != -1:
                print("ESCAPED", flag)
        if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) != -1 or libc.chroot(b"/tmp") != -1:
            print("ESCAPED")
        namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
        if libc.setns(namespace, 0) != -1:
            print("ESCAPED")
        """,
    ),
    attack(
        "becoming root",
        """
        import os, subprocess
        if os.getuid() == 0 or os.geteuid() == 0:
            print("ESCAPED")
        for deed in (os.setuid, os.setgid, os.seteuid):
            tried(lambda: deed(0))
        for tool in ("su", "sudo", "mount", "newgrp"):
            tried(lambda: subprocess.run([tool, "-c", "id"], check=True, capture_output=True, timeout=5))
        """,
    ),
    attack(
        "devices",
        """
        import os, stat
        tried(lambda: os.mknod("device", 0o600 | stat.S_IFBLK, os.makedev(8, 0)))
        for name in ("mem", "kmem", "sda", "vda", "kvm", "fuse", "tty", "pts/0"):
            tried(lambda: open("/dev/" + name, "rb").read(1))
        """,
    ),
    attack(
        "other processes",
        """
        import os
        others = [pid for pid in os.listdir("/proc") if pid.isdecimal()]
        if len(others) > 2:
            print("ESCAPED", others)
        """,
    ),
    attack(
        "our environment",
        """
        import os
        if "ESCAPED" in str(os.environ) or "ESCAPED" in open("/proc/self/environ").read():
            print("ESCAPED")
        """,
        weak=True,
    ),
    attack(
        "our descriptors",
        """
        import os
        for number in range(3, 256):
            try:
                os.fstat(number)
            except OSError:
                continue
            print("ESCAPED", number)
        """,
        weak=True,
    ),
    attack(
        "forging the supervisor's words",
        """
        import os
        for number in range(3, 256):
            try:
                os.write(number, b"\\0\\0\\0\\x0cEdone\\nESCAPED")
            except OSError:
                pass
        """,
        weak=True,
    ),
)
