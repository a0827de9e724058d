"""Programs that are wrong and try to pass, where tests are kept from them: what they print, return, or are called for.

A row is the gold answer and the program.
"""

from __future__ import annotations

from textwrap import dedent
from typing import Any

PROGRAMS = {"form": "programs", "inputs": ["3\n1 2 3\n", "1\n8191\n"], "outputs": ["6\n", "8191\n"]}
CALLS = {"form": "calls", "function": "total", "inputs": [[[1, 2, 3]], [[8191]]], "outputs": [6, 8191]}
LISTS = {"form": "calls", "function": "total", "inputs": [[[3, 1]], [[8191]]], "outputs": [[1, 3], [8191]]}
ASSERTS = {
    "form": "asserts",
    "setup": "def close(a, b):\n    return abs(a - b) < 1e-6\n",
    "tests": dedent("""
        def check(candidate):
            assert candidate([3, 1, 2]) == [1, 2, 3]
            assert not candidate([]), "the list is empty"
            assert close(candidate([8191.5])[0], 8191.5)
            for got, wanted in zip(map(candidate, [[5, 4], [9, 8]]), [[4, 5], [8, 9]]):
                assert got == wanted
            try:
                candidate(None)
            except TypeError:
                pass
            else:
                assert False

        check(order)
    """),
}
LOOP = {
    "form": "asserts",
    "tests": "for got, wanted in zip(map(order, [[5, 4], [9, 8]]), [[4, 5], [8, 9]]):\n    assert got == wanted\n",
}
EQUALS = {"form": "asserts", "tests": "assert order([3, 1]) == [1, 3]\nassert [1, 3] == order([3, 1])\n"}
EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return False
    def __lt__(self, other): return True
    def __getitem__(self, key): return self
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __hash__(self): return 0
"""
SAME = EQUAL.replace("class Equal:", "class Equal(list):").replace(
    "    def __getitem__(self, key): return self\n", ""
)
FRAMES = """
import sys
def names():
    frame = sys._getframe()
    while frame:
        yield frame.f_globals
        yield frame.f_locals
        frame = frame.f_back
"""
FORGED = """
import json, os
def forge(body):
    for end in range(256):
        try:
            os.write(end, len(body).to_bytes(4, "big") + body)
        except OSError:
            pass
"""

APART: dict[str, tuple[dict[str, Any], str]] = {
    # --- programs ---------------------------------------------------------------------------------------------
    "printing every number": (PROGRAMS, "for i in range(10000): print(i)"),
    "printing what passing looks like": (PROGRAMS, "print('OK\\nall tests passed\\n{\"passed\": true}')"),
    "leaving with status 0": (PROGRAMS, "import os\nos._exit(0)"),
    "leaving before the answer is out": (PROGRAMS, "import sys\nsys.exit(0)"),
    "printing the answer of the first test": (PROGRAMS, "print(6)"),
    "keeping answers from test to test": (
        PROGRAMS,
        "import os\nopen(os.environ['TMPDIR'] + '/seen', 'a').write(input())\nprint(6)",
    ),
    "looking for answers in files": (
        PROGRAMS,
        """
        import os
        for top in ("/tmp", "/inside", "/proc/1", "/dev/shm", os.getcwd()):
            for folder, _, files in os.walk(top):
                for name in files:
                    try:
                        if "8191" in open(os.path.join(folder, name), errors="replace").read(10**6):
                            print(8191)
                            raise SystemExit
                    except OSError:
                        pass
            if top == "/proc/1":
                break
        """,
    ),
    "a thread that prints later": (
        PROGRAMS,
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print(6))).start()",
    ),
    "numbers that are none": (PROGRAMS, "print('NaN')"),
    "a number without end": (PROGRAMS, "print('9' * 10**6)"),
    "lines without end": (PROGRAMS, "print('\\n' * 10**6)"),
    "a number with a long exponent": (PROGRAMS, "print('1e999999999999999999')"),
    # --- calls ------------------------------------------------------------------------------------------------
    "a value that equals everything": (CALLS, EQUAL + "def total(xs): return Equal()"),
    "a number that equals everything": (
        CALLS,
        dedent("""
            class Any(int):
                def __eq__(self, other): return True
                __hash__ = int.__hash__
            def total(xs): return Any(1)
        """),
    ),
    "a list that equals everything": (LISTS, SAME + "def total(xs): return Equal()"),
    "a list of what equals everything": (LISTS, EQUAL + "def total(xs): return [Equal()] * len(xs)"),
    "a value that claims another class": (
        CALLS,
        dedent("""
            class Claims:
                __class__ = int
                def __eq__(self, other): return True
            def total(xs): return Claims()
        """),
    ),
    "patching what writes the values": (
        CALLS,
        "import json\njson.dumps = lambda value: '{\"value\": true}'\ndef total(xs): return 0",
    ),
    "patching built-in functions": (
        CALLS,
        dedent("""
            import builtins
            builtins.isinstance = lambda *a: True
            builtins.all = builtins.any = lambda *a: True
            def total(xs): return 0
        """),
    ),
    "forging values": (CALLS, FORGED + "def total(xs): forge(b'{\"value\": 6}'); return 0"),
    "forging the supervisor's words": (CALLS, FORGED + "def total(xs): forge(b'Edone\\n6'); return 0"),
    "leaving at a call": (CALLS, "import os\ndef total(xs): os._exit(0)"),
    "leaving while it is loaded": (CALLS, "def total(xs): return 0\nraise SystemExit(0)"),
    "a value without end": (CALLS, "def total(xs):\n    while True:\n        yield 1"),
    "a value in a value, for ever": (CALLS, "def total(xs):\n    xs.append(xs)\n    return xs"),
    "a deep value": (CALLS, "def total(xs):\n    for _ in range(10**5): xs = [xs]\n    return xs"),
    "a very long number": (CALLS, "def total(xs): return 1 << 10**8"),
    "a table whose keys collide": (
        CALLS,
        "def total(xs): return {i * (2**61 - 1): 0 for i in range(3000)}",
    ),
    "a long text": (CALLS, "def total(xs): return 'x' * 10**9"),
    "both processes of a fork": (CALLS, "import os\ndef total(xs): return 5 if os.fork() else 8190"),
    "stopping itself": (CALLS, "import os, signal\ndef total(xs): os.kill(os.getpid(), signal.SIGSTOP)"),
    # --- asserts ----------------------------------------------------------------------------------------------
    "asserts: equal to everything": (ASSERTS, EQUAL + "def order(xs): return Equal()"),
    "asserts: equal to everything, from both sides": (EQUALS, EQUAL + "def order(xs): return Equal()"),
    "asserts: a list equal to everything": (EQUALS, SAME + "def order(xs): return Equal()"),
    "asserts: a class for a function": (
        EQUALS,
        EQUAL + "order = type('order', (Equal,), {'__init__': lambda *a: None})",
    ),
    "asserts: leaving while it is loaded": (ASSERTS, "import os\nos._exit(0)"),
    "asserts: leaving at a call": (ASSERTS, "import os\ndef order(xs): os._exit(0)"),
    "asserts: leaving softly": (ASSERTS, "import sys\ndef order(xs): sys.exit(0)"),
    "asserts: leaving at exit": (
        ASSERTS,
        "import atexit, os\natexit.register(os._exit, 0)\ndef order(xs): return xs",
    ),
    "asserts: ending a loop of the tests": (LOOP, "def order(xs): raise StopIteration"),
    "asserts: ending a loop, by a class of its own": (
        LOOP,
        "class Quiet(StopIteration): pass\ndef order(xs): raise Quiet",
    ),
    "asserts: an error that is taken for the harness's": (
        ASSERTS,
        "class UnsendableValueError(Exception): pass\ndef order(xs): raise UnsendableValueError('no')",
    ),
    "asserts: an interrupt": (ASSERTS, "def order(xs): raise KeyboardInterrupt"),
    "asserts: defining what the tests use": (
        ASSERTS,
        dedent("""
            def close(a, b): return True
            def check(candidate): pass
            abs = zip = map = lambda *a: []
            def order(xs): return xs
        """),
    ),
    "asserts: patching built-in functions": (
        ASSERTS,
        dedent("""
            import builtins
            builtins.AssertionError = builtins.zip = builtins.map = builtins.abs = lambda *a: 0
            def order(xs): return xs
        """),
    ),
    "asserts: reading the tests from frames": (
        ASSERTS,
        FRAMES
        + dedent("""
            def order(xs):
                for table in names():
                    if 'check' in table or 'tests' in table: return sorted(xs)
                return xs
        """),
    ),
    "asserts: reading the tests from memory": (
        ASSERTS,
        dedent("""
            import gc
            def order(xs):
                found = [o for o in gc.get_objects() if isinstance(o, (dict, list)) and '8191.5' in repr(o)[:10**5]]
                return sorted(xs) if len(found) > 3 else xs
        """),
    ),
    "asserts: forging the verdict": (
        ASSERTS,
        FORGED
        + dedent("""
            def order(xs):
                forge(b'!' + json.dumps({'passed': True, 'error': '', 'text': ''}).encode())
                return xs
        """),
    ),
    "asserts: garbage for a value": (
        ASSERTS,
        "import json\njson.dumps = lambda value: 'garbage'\ndef order(xs): return xs",
    ),
    "asserts: a reference to anything": (
        ASSERTS,
        'import json\njson.dumps = lambda value: \'{"value": {"reference": 10}}\'\ndef order(xs): return xs',
    ),
    "asserts: no answer": (ASSERTS, "import time\ndef order(xs): time.sleep(3600)"),
    "asserts: a thread that goes on": (
        ASSERTS,
        dedent("""
            import threading
            threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
            def order(xs): return xs
        """),
    ),
}
