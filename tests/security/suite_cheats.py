"""Programs that are wrong and try to pass a `unittest` suite."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from cheats import EQUAL, FORGED, SAME

SUITE = {
    "form": "unittest",
    "setup": "import json\n",
    "tests": dedent("""
        import math
        import unittest
        from unittest.mock import patch

        class TestCases(unittest.TestCase):
            def test_one(self):
                self.assertEqual(order([3, 1, 2]), [1, 2, 3])

            def test_two(self):
                self.assertTrue(order([8191, 5]) == [5, 8191])

            def test_three(self):
                self.assertTrue(math.isclose(order([8191.5])[0], 8191.5))
                self.assertEqual(order([2, 1])[0], 1)
    """),
}

LISTED = {
    "form": "unittest",
    "tests": dedent("""
        import unittest

        class TestCases(unittest.TestCase):
            def test_one(self):
                self.assertEqual(order([3, 1, 2]), [1, 2, 3])

            def test_two(self):
                self.assertEqual(order([2, 1]), [1, 2])
    """),
}

TOGETHER: dict[str, tuple[dict[str, Any], str]] = {
    "suite: equal to everything": (LISTED, EQUAL + "def order(xs): return Equal()"),
    "suite: a list equal to everything": (LISTED, SAME + "def order(xs): return Equal(xs)"),
    "suite: a list of what equals everything": (
        LISTED,
        EQUAL + "def order(xs): return [Equal() for x in xs]",
    ),
    "suite: a metaclass that lies": (
        LISTED,
        EQUAL.replace(
            "class Equal:", "class Lies(type):\n    __mro__ = (object,)\nclass Equal(metaclass=Lies):"
        )
        + "def order(xs): return Equal()",
    ),
    "suite: what mocks compare with": (
        LISTED,
        "import unittest.mock\ndef order(xs): return unittest.mock.ANY",
    ),
    "suite: a list of what mocks compare with": (
        LISTED,
        "import unittest.mock\ndef order(xs): return [unittest.mock.ANY] * len(xs)",
    ),
    "suite: a mock that is told what it equals": (
        LISTED,
        "from unittest.mock import MagicMock\nequal = MagicMock()\nequal.__eq__.return_value = True\n"
        "def order(xs): return equal",
    ),
    "suite: a partial for a function": (
        LISTED,
        EQUAL + "from functools import partial\norder = partial(lambda equal, xs: equal, Equal())",
    ),
    "suite: an instance for a function": (
        LISTED,
        EQUAL.replace("class Equal:", "class Equal:\n    def __call__(self, xs): return self")
        + "order = Equal()",
    ),
    "suite: a descriptor that compares": (
        LISTED,
        dedent("""
            class Always:
                def __get__(self, instance, owner): return lambda other: True
            class Equal:
                __eq__ = Always()
            def order(xs): return Equal()
        """),
    ),
    "suite: a class of another source": (
        LISTED,
        f"exec(compile({EQUAL!r}, 'elsewhere.py', 'exec'))\ndef order(xs): return Equal()",
    ),
    "suite: a method that names another source": (
        LISTED,
        EQUAL
        + dedent("""
            for method in vars(Equal).values():
                if hasattr(method, '__code__'):
                    method.__code__ = method.__code__.replace(co_filename='elsewhere.py')
            def order(xs): return Equal()
        """),
    ),
    "suite: an error for which a test is skipped": (
        LISTED,
        "import unittest\nclass Skip(unittest.SkipTest): pass\nSkip.__module__ = 'unittest'\n"
        "Skip.__qualname__ = 'SkipTest'\ndef order(xs): raise Skip('later')",
    ),
    "suite: leaving while it is loaded": (SUITE, "import os\nos._exit(0)"),
    "suite: leaving at a call": (SUITE, "import os\ndef order(xs): os._exit(0)"),
    "suite: leaving softly": (SUITE, "import sys\ndef order(xs): sys.exit(0)"),
    "suite: leaving at exit": (
        SUITE,
        "import atexit, os\natexit.register(os._exit, 0)\ndef order(xs): return xs",
    ),
    "suite: asserting nothing": (
        SUITE,
        dedent("""
            import unittest
            unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *a: None
            def order(xs): return xs
        """),
    ),
    "suite: asserting nothing from the first call on": (
        SUITE,
        dedent("""
            def order(xs):
                import unittest
                unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *a: None
                return xs
        """),
    ),
    "suite: comparing nothing from the first call on": (
        LISTED,
        dedent("""
            def order(xs):
                import unittest
                unittest.TestCase.assertListEqual = unittest.TestCase._baseAssertEqual = lambda *a, **k: None
                return xs
        """),
    ),
    "suite: asserting nothing, and hiding that": (
        LISTED,
        dedent("""
            import unittest
            real, calls = unittest.TestCase.assertEqual, []
            def passes(*given):
                calls.append(given)
                if len(calls) == 2:
                    unittest.TestCase.assertEqual = real
            unittest.TestCase.assertEqual = passes
            def order(xs): return xs
        """),
    ),
    "suite: failing nothing": (
        SUITE,
        dedent("""
            import unittest
            unittest.TestResult.addFailure = unittest.TestResult.addError = unittest.TestResult.addSuccess
            def order(xs): return xs
        """),
    ),
    "suite: another unittest": (
        SUITE,
        dedent("""
            import sys, types
            fake = types.ModuleType('unittest')
            fake.TestCase = type('TestCase', (), {'assertEqual': print, 'assertTrue': print})
            sys.modules['unittest'] = fake
            def order(xs): return xs
        """),
    ),
    "suite: loading no tests": (
        SUITE,
        dedent("""
            import unittest
            unittest.TestLoader.loadTestsFromTestCase = lambda self, kind: unittest.TestSuite()
            def order(xs): return xs
        """),
    ),
    "suite: tests of its own": (
        SUITE,
        dedent("""
            import unittest
            class TestCases(unittest.TestCase):
                def test_one(self): pass
            def order(xs): return xs
        """),
    ),
    "suite: skipping": (SUITE, "import unittest\ndef order(xs): raise unittest.SkipTest('later')"),
    "suite: patching what the tests import": (
        SUITE,
        "import math\nmath.isclose = lambda *a: True\ndef order(xs): return sorted(xs) if xs[0] != 8191.5 else [0]",
    ),
    "suite: patching what writes the report": (
        SUITE,
        dedent("""
            import json, os
            json.dumps = lambda value: '{"passed": ["test_one", "test_two", "test_three"]}'
            os.write = lambda *a: None
            def order(xs): return xs
        """),
    ),
    "suite: patching the harness": (
        SUITE,
        dedent("""
            import sys
            for name, module in list(sys.modules.items()):
                if 'podium' in name or name == '__main__':
                    for key, value in list(vars(module).items()):
                        if callable(value): setattr(module, key, lambda *a, **k: True)
            def order(xs): return xs
        """),
    ),
    "suite: patching what counts": (
        LISTED,
        dedent("""
            import sys
            import unittest
            result = unittest.TestResult
            result.addFailure = result.addError = lambda self, test, error: self.addSuccess(test)
            def order(xs): return xs
        """),
    ),
    "suite: forging the report": (
        SUITE,
        FORGED + "def order(xs):\n    forge(b'word\\ntest_one\\ntest_two\\ntest_three')\n    os._exit(0)",
    ),
    "suite: built-in functions": (
        SUITE,
        dedent("""
            import builtins
            builtins.AssertionError = Warning
            builtins.callable = builtins.isinstance = lambda *a: False
            def order(xs): return xs
        """),
    ),
}
