"""What programs have used up, or held on to, one property a row; as in `attacks`."""

from __future__ import annotations

from attacks import attack

BOMBS = (
    attack(
        "a fork bomb",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "time",
        "processes",
    ),
    attack(
        "a bomb of threads",
        """
        import threading, time
        while True:
            threading.Thread(target=time.sleep, args=(60,)).start()
        """,
        "failed",
        "processes",
        weak=True,
    ),
    attack(
        "a memory bomb",
        """
        held = []
        while True:
            held.append(bytearray(b"x") * 2**24)
        """,
        "failed",
        "memory",
        weak=True,
    ),
    attack(
        "a memory bomb of several processes",
        """
        import os, time
        def fork():
            while True:
                try:
                    return os.fork()
                except OSError:  # Programs of other tests, of the same user, have all processes of the limit.
                    time.sleep(0.05)
        for _ in range(4):
            fork()
        held = bytearray(b"x") * 2**27
        time.sleep(60)
        """,
        "memory",
        weak=True,
    ),
    attack(
        "memory that counts for nobody",
        """
        import ctypes, os
        tried(lambda: os.memfd_create("x"))
        libc = ctypes.CDLL(None, use_errno=True)
        for made in (libc.shmget(0, 2**20, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600)):
            if made >= 0:
                print("ESCAPED")
        """,
    ),
    attack(
        "a disk bomb",
        """
        written = 0
        try:
            for number in range(10**6):
                with open(str(number), "wb") as file:
                    written += file.write(bytes(2**20))
        except OSError:
            pass
        if written > 2**27:
            print("ESCAPED", written)
        """,
    ),
    attack(
        "one file without end",
        """
        file = open("large", "wb", buffering=0)
        written = 0
        try:
            while True:
                written += file.write(bytes(2**20))
        except OSError:
            pass
        if written > 2**26:
            print("ESCAPED", written)
        """,
        weak=True,
    ),
    attack("output without end", "while True: print('x' * 1000)", "output", weak=True),
    attack("a loop without end", "while True: pass", "time", weak=True),
    attack("sleep without end", "import time\nwhile True: time.sleep(1)", "time", weak=True),
    attack(
        "ignoring signals",
        """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            pass
        """,
        "time",
        weak=True,
    ),
    attack("stopping itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "time", weak=True),
    attack(
        "closing everything",
        "import os\nos.closerange(0, 256)",
        "done",
        "failed",
        weak=True,
    ),
    attack("leaving without a word", "import os\nos._exit(0)", weak=True),
    attack(
        "depth without end",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
        "failed",
        "killed",
        "memory",
        "time",
        weak=True,
    ),
    attack(
        "leaving a daemon behind",
        """
        import os, time
        for _ in range(3):
            if os.fork():
                os._exit(0)
            os.setsid()
        os.execvp("sleep", ["sleep", "86399"])
        """,
        weak=True,
    ),
)
