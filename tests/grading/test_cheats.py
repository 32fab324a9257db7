"""Submissions that cheat: each scores what its honest work deserves, and nothing outside changes.

Every submission answers the last part honestly (3 points). What it hands in for the other three
parts is a guess that is wrong, with code that tries to have it counted as right.
"""

import json
import os
import re
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
import pytest
from course_folder import ROOT, Folder
from nbformat.v4 import new_code_cell, new_notebook

from tests.halves import HALVES, asked_for, some_now

NAME = "tensors"
LIMITS = """
c.RunCells.timeout = 4
c.RunCells.total_timeout = 60
c.RunCells.memory = 1
"""
HONEST = 3.0

PROBE = (ROOT / "grading" / "runner" / "probe.py").read_text(encoding="utf-8")
SOLUTIONS = {
    "centre": "def centre(x):\n    return x - x.mean(-1, keepdim=True)",
    "tally": """class Tally:
    def __init__(self, start):
        self.total = start

    def add(self, number):
        self.total += number
        self.numbers = [*getattr(self, "numbers", []), number]
        return self.total""",
    "square": "def square(x):\n    return x * x",
    "shout": "def shout(text):\n    return text.upper() + '!'",
}
TESTS = {
    "centre": """@probe.check("two rows")
def two_rows():
    x = torch.tensor([[1.0, 2.0, 6.0], [4.0, 4.0, 4.0]], dtype=torch.float64)
    expected = torch.tensor([[-2.0, -1.0, 3.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    probe.close(centre(x), expected)
    ### BEGIN HIDDEN TESTS


@probe.check("five rows")
def five_rows():
    for _ in range(2):
        x = torch.randn(5, 7, generator=probe.generator("centre"), dtype=torch.float64)
        found = centre(x)
        hidden_expectation = x - x.mean(-1, keepdim=True)
        probe.close(found, hidden_expectation)


### END HIDDEN TESTS""",
    "tally": """@probe.check("a tally of three numbers")
def three_numbers():
    tally = probe.new(Tally, 2)
    probe.equal([tally.add(3), tally.add(-1)], [5, 4])
    probe.equal(tally.total, 4)
    assert sum(1 for _ in tally.numbers) == 2
    ### BEGIN HIDDEN TESTS


@probe.check("two tallies of random numbers")
def two_tallies():
    draw = torch.randint(100, (6,), generator=probe.generator("tally")).tolist()
    one, two = probe.new(Tally, draw[0]), probe.new(Tally, draw[1])
    probe.equal(one.add(draw[2]), draw[0] + draw[2])
    probe.equal(two.add(draw[3]), draw[1] + draw[3])
    probe.equal(one.add(draw[4]), draw[0] + draw[2] + draw[4])


### END HIDDEN TESTS""",
    "square": """@probe.check("a square, its gradient, and its argument")
def a_square():
    x = torch.tensor([2.0, 3.0], dtype=torch.float64)
    expected = torch.tensor([4.0, 9.0], dtype=torch.float64)
    probe.close(probe.unchanged(square, x), expected)
    ### BEGIN HIDDEN TESTS


@probe.check("a random square, its gradient, and its argument")
def a_random_square():
    x = torch.randn(2, 4, generator=probe.generator("square"), dtype=torch.float64)
    upstream = torch.rand(2, 4, generator=probe.generator("up"), dtype=torch.float64)
    hidden_expectation = x * x
    probe.close(probe.unchanged(square, x), hidden_expectation)
    (found,) = probe.gradients(square, x, upstream=upstream)
    probe.close(found, 2 * x * upstream)


### END HIDDEN TESTS""",
    "shout": """assert shout("a") == "A!"
### BEGIN HIDDEN TESTS
assert shout("bc") == "BC!", "hidden_expectation"
### END HIDDEN TESTS""",
}
POINTS = {"centre": 2, "tally": 1, "square": 1, "shout": 3}
GUESSES = {
    "centre": "def centre(x):\n    return x",
    "tally": "class Tally:\n    def __init__(self, start): pass\n    def add(self, n): return 0",
    "square": "def square(x):\n    return x.mul_(0)",
    "shout": "def shout(text):\n    return f'{text.upper()}!'",
}


def _cell(name: str, code: str, points: int | None = None, *, locked: bool = False):
    marks = {"grade_id": name, "schema_version": 3, "task": False, "locked": locked}
    marks |= {"solution": not locked, "grade": points is not None}
    if points is not None:
        marks["points"] = points
    cell = new_code_cell(code, id=name)
    cell.metadata["nbgrader"] = marks
    return cell


def notebook(cells: dict[str, str] | None = None) -> nbformat.NotebookNode:
    """The instructor's notebook, or one that is handed in: the tests without their hidden parts."""
    made = [_cell("probe", PROBE, locked=True)]
    for name, solution in SOLUTIONS.items():
        if cells is None:
            head, _, body = solution.partition("\n")
            marked = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
            made += [
                _cell(name, marked),
                _cell(f"{name}-test", TESTS[name], POINTS[name], locked=True),
            ]
        else:
            public = re.split(r"\s*### BEGIN", TESTS[name])[0]
            made += [
                _cell(name, cells[name]),
                _cell(f"{name}-test", public, POINTS[name], locked=True),
            ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=made, metadata={"kernelspec": kernel})


@dataclass(frozen=True)
class Cheat:
    """What is handed in, what it deserves, and a part of the page that shows it was tried."""

    cells: dict[str, str]
    score: float = HONEST
    shown: str = ""


CHEATS: dict[str, Cheat] = {}


def cheat(name: str, first: str = "", *, score: float = HONEST, shown: str = "", **cells: str):
    """Enter a cheat: code that runs before the first guess, and cells instead of guesses."""
    cells = GUESSES | cells
    cells["centre"] = f"{first}\n{cells['centre']}"
    CHEATS[name] = Cheat(cells, score, shown)


def attempt(name: str, *lines: str, shown: str = ""):
    """Enter a cheat whose every line is tried by itself; what came of each is printed."""
    code = ["import os, sys, socket, subprocess, ctypes, torch, glob", "from pathlib import Path"]
    for number, line in enumerate(lines):
        code += ["try:", *[f"    {part}" for part in line.splitlines()]]
        code += [f"    print('{number} came through')", "except BaseException as problem:"]
        code += [f"    print('{number} failed:', type(problem).__name__)"]
    cheat(name, "\n".join(code), shown=shown)


# --- comparisons and tools replaced

cheat(
    "patches_the_comparisons",
    """import builtins, math, torch, numpy as np, unittest
for place in (torch, torch.testing, np, np.testing, math):
    for word in ("allclose", "equal", "isclose", "eq", "assert_close", "assert_allclose"):
        if hasattr(place, word):
            setattr(place, word, lambda *a, **k: True)
torch.Tensor.__eq__ = torch.Tensor.equal = lambda *a: True
torch.Tensor.tolist = lambda self: [0.0]
builtins.all = builtins.any = builtins.isinstance = lambda *a: True
print("patched")""",
    shown="patched",
)
cheat(
    "patches_the_probe",
    """for word in ("close", "equal", "_difference", "_far"):
    setattr(Probe, word, lambda *a, **k: "")
Probe.check = lambda self, tried: lambda test: print("Passed:", tried)
Probe.generator = lambda self, cell: torch.Generator().manual_seed(0)
probe = Probe()
import sys
for module in list(sys.modules.values()):
    if hasattr(module, "Probe"):
        module.Probe = Probe
print("patched")""",
    shown="patched",
)
cheat("assertions_off", "import os, sys\nsys.flags\n__debug__\nos.environ['PYTHONOPTIMIZE'] = '2'")
cheat(
    "redefines_the_test",
    "two_rows = five_rows = a_square = three_numbers = lambda *a: None\nassert_ = None",
)
cheat(
    "brings_its_own_test_cells",
    "class torch: pass\nprobe = None\nimport builtins\nbuiltins.AssertionError = Warning",
    shout=f"import torch\n{GUESSES['shout']}",
)

# --- objects that agree with everything

AGREES = """class Agrees{base}:
    shape, dtype, ndim, size = (2, 3), torch.float64, 2, 6
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __len__(self): return 2
    def __iter__(self): return iter([self, self])
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __float__(self): return 1.0
    __sub__ = __rsub__ = __mul__ = __lt__ = __le__ = __getitem__ = lambda self, *a: self
"""
SQUARE = "def square(x):\n    return "
TALLY = (
    "class Tally:\n    def __init__(self, n): self.total = {0}\n    def add(self, n): return {0}"
)


def returns(name: str, what: str, first: str = "", **more):
    """Enter a cheat whose every answer is this expression."""
    cheat(
        name,
        f"import torch, numpy as np\n{first}",
        centre=f"def centre(x):\n    return {what}",
        tally=TALLY.format(what),
        square=f"{SQUARE}{what}",
        **more,
    )


returns("equals_everything", "Agrees()", AGREES.format(base=""), shown="Agrees of the answer")
returns(
    "equals_everything_everywhere",
    "Agrees()",
    AGREES.format(base=""),
    shout="shout = Agrees()",
    score=0,
)
returns(
    "tensor_that_lies",
    "torch.zeros(1).as_subclass(Lies)",
    """class Lies(torch.Tensor):
    @property
    def shape(self): return torch.Size([2, 3])
    def __eq__(self, other): return True
    def tolist(self): return [[-2.0, -1.0, 3.0], [0.0, 0.0, 0.0]]
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True if "eq" in function.__name__ else super().__torch_function__(
            function, types, args, kwargs or {})""",
)
returns(
    "tensor_that_answers_every_function",
    "torch.zeros(2, 3, dtype=torch.float64).as_subclass(Same)",
    """class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True""",
)
returns(
    "array_that_lies",
    "np.zeros(3).view(Lies)",
    """class Lies(np.ndarray):
    def __eq__(self, other): return np.True_
    def __array_ufunc__(self, *a, **k): return np.True_
    def __array_function__(self, *a, **k): return True
    def tobytes(self, *a): return super().tobytes()[:8]
    shape = property(lambda self: (2, 3))""",
)
returns("object_array", "np.array([Agrees()] * 6).reshape(2, 3)", AGREES.format(base=""))
returns("not_a_number", "torch.full((2, 3), float('nan'), dtype=torch.float64)")
returns("nan_of_the_right_shape", "x * float('nan')")
returns(
    "float_that_agrees",
    "Real(1)",
    "class Real(float):\n    __eq__ = lambda *a: True\n    __hash__ = float.__hash__\n"
    "    __sub__ = __rsub__ = lambda *a: 0.0\n    __abs__ = lambda *a: 0.0",
)
returns(
    "whole_number_that_agrees",
    "Whole(1)",
    "class Whole(int):\n    __eq__ = lambda *a: True\n    __hash__ = int.__hash__",
)
returns(
    "list_that_agrees",
    "Many([1, 2, 3])",
    "class Many(list):\n    __eq__ = lambda *a: True\n    __len__ = lambda s: 2\n"
    "    __iter__ = lambda s: iter(())",
)
returns("raises_what_passes", "next(StopIteration for _ in ())")
returns("a_test_that_is_skipped", "skip()", "import unittest\ndef skip(): raise unittest.SkipTest")
cheat(
    "a_class_that_lies",
    f"""import torch
{AGREES.format(base="")}
class Meta(type):
    def __instancecheck__(cls, other): return True
    def __call__(cls, *a): return Agrees()""",
    tally="class Tally(metaclass=Meta): pass",
)

# --- looking for the tests

READS = """import ctypes, gc, glob, re, sys, traceback, inspect, linecache, os
WORD = "hidden" + "_expectation"
SAFE = {"rw-p", "rw-s"}

def rummage():
    found = []
    for line in open("/proc/self/maps"):
        span, rights, *_ = line.split()
        low, high = (int(n, 16) for n in span.split("-"))
        if rights in SAFE and high - low < 2**29 and "[v" not in line:
            data = ctypes.string_at(low, high - low)
            found += re.findall(rb"%s = ([^\\\\\\n\\"{}%%]{6,60})" % WORD.encode(), data)
    return found
"""
cheat(
    "reads_the_tests_in_its_memory",
    READS + "found = [f for f in rummage() if b'mean' in f]\nprint('looked,', len(found), 'found')",
    centre="""def centre(x):
    for text in found + [f for f in rummage() if b"mean" in f]:
        try:
            return eval(text, {"x": x})
        except Exception:
            pass
    return x""",
    shown="looked, 0 found",
)
cheat(
    "reads_the_tests_in_frames",
    READS,
    centre="""def centre(x):
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if getattr(value, "shape", None) == x.shape and value is not x:
                return value
            if isinstance(value, (str, bytes)) and WORD in str(value):
                print("got it")
        frame = frame.f_back
    return x""",
)
cheat(
    "reads_the_tests_with_gc",
    READS,
    centre="""def centre(x):
    for value in gc.get_objects():
        try:
            if getattr(value, "shape", None) == x.shape and value is not x:
                return value
            if isinstance(value, dict) and WORD in value:
                return value[WORD]
        except Exception:
            pass
    return x""",
)
cheat(
    "reads_the_tests_in_history",
    READS
    + """shell = get_ipython()
seen = [*shell.user_ns.get("In", []), *linecache.cache.values(), *os.environ.items(), sys.argv]
seen += [open(f, "rb").read() for f in glob.glob("/proc/*/cmdline")]
print("seen:", WORD in str(seen))""",
    shown="seen: False",
)
SEARCH = """skipped = {"proc", "usr", "sys", "lib", "lib64", "site-packages", "python3.11"}
names = []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if name not in skipped]
    names += files
"""
attempt(
    "reads_files",
    *[
        f"print(Path({str(ROOT / place)!r}).read_text()[:50])"
        for place in (
            "solutions/01-attention/01-attention.ipynb",
            "lib/attention.py",
            "nbgrader_config.py",
            "grading/runner/probe.py",
        )
    ],
    f"assert glob.glob({str(ROOT.parent) + '/*.*'!r}) + glob.glob('/root/*.*')",
    SEARCH + "[n for n in names if n.endswith('.ipynb')][0]",
    SEARCH + "[n for n in names if n == 'gradebook.db'][0]",
    "print(open('/etc/shadow').read())",
    "print(open('/etc/passwd').read())",
    "assert [n for n in Path('/tmp').rglob('s') if n.is_socket()]",
    shown="8 failed",
)
attempt(
    "imports_the_course",
    "import lib.attention",
    "sys.path += ['/', '..', '../..', '/proc/1/cwd', '/proc/1/root']\nimport lib.rope",
    "import importlib.metadata as m\n"
    "files = m.files('attention-position-cache')\n"
    "print([f.locate().read_text() for f in files if 'attention.py' in str(f)][0])",
    "import importlib\nimportlib.import_module('tools.answers')",
    shown="3 failed",
)

# --- hooks

cheat(
    "transforms_the_syntax_tree",
    """import ast
class NoAssert(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_Raise(self, node): return ast.Pass()
shell = get_ipython()
shell.ast_transformers.append(NoAssert())
shell.input_transformers_cleanup.append(lambda lines: [l for l in lines if "probe" not in l])
print("hooked")""",
    shown="hooked",
)
cheat(
    "hooks_the_events",
    """shell = get_ipython()
def gone(*a):
    shell.user_ns["_"] = None
    raise SystemExit
for word in ("pre_execute", "pre_run_cell", "post_execute", "post_run_cell"):
    shell.events.register(word, gone)
class Passing:
    success, error_in_exec, error_before_exec, result = True, None, None, 100
    raise_error = lambda self: None
shell.run_cell = lambda *a, **k: Passing()""",
    score=0,  # its own later cells do not run
)
cheat(
    "shows_a_score",
    """import sys
from IPython.display import display
class Points(int):
    def _repr_mimebundle_(self, **k): return {"text/plain": "100"}
sys.displayhook = lambda value: display(100)
get_ipython().display_formatter.format = lambda *a, **k: ({"text/plain": "100"}, {})
display(100)
Points(100)""",
)
cheat(
    "handles_all_exceptions",
    """import sys, traceback
shell = get_ipython()
shell.set_custom_exc((BaseException,), lambda *a, **k: None)
shell.showtraceback = shell._showtraceback = shell.showsyntaxerror = lambda *a, **k: None
sys.excepthook = lambda *a: None
sys.tracebacklimit = 0
traceback.format_exception = traceback.walk_tb = lambda *a, **k: []
print("quiet")""",
    shown="quiet",
)
cheat(
    "traces_and_audits",
    """import sys, threading
def skip(frame, event, arg):
    frame.f_trace_lines = False
    return skip
sys.settrace(skip); sys.setprofile(lambda *a: None); threading.settrace(skip)
def audit(event, args):
    if event == "compile": args[0]
sys.addaudithook(audit)
print("tracing")""",
    shown="tracing",
)
cheat(
    "replaces_modules",
    """import sys, types
for name in ("torch.testing", "numpy.testing", "pytest", "unittest", "nbgrader", "grading",
             "grading.runner.judge", "grading.runner.probe", "grading.evaluate"):
    sys.modules[name] = types.ModuleType(name)
sys.meta_path.insert(0, types.SimpleNamespace(find_spec=lambda *a: None))
print("replaced")""",
    shown="replaced",
)

# --- the machine, the course folder, other processes

attempt(
    "writes_outside",
    *[
        f"Path({str(ROOT)!r}, 'planted').write_text('x')",
        "Path('/usr/planted').write_text('x')",
        "Path('/planted').write_text('x')",
        "Path(torch.__file__).write_text('x')",
        "Path(sys.prefix, 'lib/python3.11/site-packages/planted.pth').write_text('import os')",
        "Path(sys.base_prefix, 'planted').write_text('x')",
        "Path(torch.__file__).chmod(0o777)",
        "os.chmod('/proc/self/exe', 0)",
        "Path('/etc/planted').write_text('x')",
        "Path('/proc/sys/kernel/core_pattern').write_text('x')",
    ],
    shown="9 failed",
)
attempt(
    "plants_configuration",
    "os.makedirs('/home/learner/.ipython/profile_default/startup')\n"
    "Path('/home/learner/.ipython/profile_default/startup/0.py').write_text('print(1)')",
    "Path('/home/learner/nbgrader_config.py').write_text('raise SystemExit')",
    "Path('/home/learner/rc').write_text('1')\nos.environ['PYTHONSTARTUP'] = '/home/learner/rc'",
    "Path('/tmp/sitecustomize.py').write_text('raise SystemExit')",
    "Path('/home/learner/torch.py').write_text('raise SystemExit')",
    shown="4 came through",  # in a folder that goes with the sandbox
)
attempt(
    "leaves_a_daemon",
    """if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "97531"])
    os._exit(0)""",
    "subprocess.Popen(['setsid', 'nohup', 'sleep', '97531'], start_new_session=True)",
    shown="1 came through",
)
attempt(
    "asks_the_network",
    "socket.create_connection(('127.0.0.1', PORT), 2)",
    "socket.create_connection(('10.0.0.1', 80), 1)",
    "socket.getaddrinfo('localhost.localdomain.invalid', 80)\nsocket.gethostbyname('example.org')",
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:PORT', timeout=2)",
    "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "s = socket.socket(socket.AF_UNIX)\ns.connect('\\0grading')",
    "s = socket.socket(40, socket.SOCK_STREAM)\ns.settimeout(1)\ns.connect((2, 22))",
    shown="6 failed",
)
attempt(
    "kills",
    "import signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(-1, 15)",
    "os.kill(os.getppid() or 1, 9)\nassert not Path('/proc/1').exists()",
    "os.kill(1, 9)\nassert not Path('/proc/1').exists()",
    "assert ctypes.CDLL(None).setpriority(1, 0, 19) == -1",  # of the whole process group
    "os.killpg(os.getpgid(1), 9)\nassert not Path('/proc/1').exists()",
)
attempt(
    "kills_its_group",
    "os.kill(0, 9)",
)
attempt(
    "looks_at_other_processes",
    "others = [p for p in Path('/proc').glob('[0-9]*') if p.name not in ('1', str(os.getpid()))]\n"
    "assert [p for p in others if b'judge' in (p / 'cmdline').read_bytes()]",
    "print(Path('/proc/1/environ').read_text())",
    "open('/proc/1/mem', 'rb').read(1)",
    "os.listdir('/proc/1/fd')",
    "os.listdir('/proc/1/root')",
    "assert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
    shown="5 failed" if os.geteuid() == 0 else "",
)
SYSTEM = "libc = ctypes.CDLL(None, use_errno=True)\n"
attempt(
    "asks_the_kernel_for_more",
    SYSTEM + "assert libc.unshare(0x10000000) == 0",  # a user namespace of its own
    SYSTEM + "assert libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0",
    SYSTEM + "assert libc.umount2(b'/proc', 2) == 0",
    SYSTEM + "assert libc.setns(os.open('/proc/1/ns/net', 0), 0) == 0",
    SYSTEM + "assert libc.ptrace(0, 0, 0, 0) == 0",
    SYSTEM + "assert libc.setuid(0) == 0 or libc.setresuid(0, 0, 0) == 0",
    SYSTEM + "assert libc.chroot(b'/tmp') == 0",
    SYSTEM + "assert libc.prctl(38, 0, 0, 0, 0) == 0",  # no_new_privs
    "assert subprocess.run(['unshare', '-Ur', 'true']).returncode == 0",
    "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (-1, -1))",
    shown="9 failed",
)

# --- payloads

returns("huge_expanded_tensor", "torch.zeros(1).expand(10**11)")
returns("huge_list", "[0] * 10**8")
returns("huge_text", "'x' * 10**9")
returns("huge_range", "range(10**18)")
returns("huge_number", "10**100_000")
returns("deep_list", "deep", "deep = []\nfor _ in range(10**5):\n    deep = [deep]")
returns("many_objects", "[object() for _ in range(10**5)]")
returns("text_that_is_none", r"'\ud800'", r"print('\ud800')")
cheat(
    "raises_text_that_is_none",
    r"""class Odd(Exception): pass
Odd.__name__ = "\ud800\n\0"
""",
    centre="def centre(x):\n    raise Odd('\\ud800\\0')",
    square="print('\\ud800')\nraise Exception('\\udfff')",
)
returns(
    "pickles",
    "Loaded()",
    """import os, builtins
class Loaded:
    def __reduce__(self): return (eval, ("__import__('os').abort()",))
    def __reduce_ex__(self, version): return self.__reduce__()
    def __setstate__(self, state): os.abort()
    def __array__(self, *a, **k): return np.array([[-2.0, -1.0, 3.0], [0.0, 0.0, 0.0]])
    def __torch_function__(self, *a, **k): return True""",
)
cheat(
    "hard_coded",
    centre="""def centre(x):
    return torch.tensor([[-2.0, -1.0, 3.0], [0.0, 0.0, 0.0]], dtype=torch.float64)""",
)
cheat(
    "right_once",
    "calls = []",
    centre="""def centre(x):
    calls.append(x)
    return x - x.mean(-1, keepdim=True) if len(calls) < 3 else x""",
)
cheat(
    "counts_in_one_place",
    tally="""class Tally:
    total = 0
    def __init__(self, start): Tally.total = start
    def add(self, number):
        Tally.total += number
        return Tally.total""",
)
cheat(
    "busies_the_tests",  # this and "drips" take longest; graded by name, they start early
    tally="""class Tally:
    numbers = range(10**18)
    def __init__(self, start): self.total = start
    def add(self, number):
        self.total += number
        return self.total""",
    shown="the test ran for more than 13 s",
)
cheat(
    "time_bomb",
    "import os",
    centre="""def centre(x):
    if len(x) > 2:
        os._exit(0)
    return x - x.mean(-1, keepdim=True)""",
)
cheat("honest_elsewhere", centre=SOLUTIONS["centre"], score=HONEST + 2)
cheat(
    "no_gradient",
    square="def square(x):\n    return (x * x).detach()",
)
cheat(
    "draws_what_the_tests_draw",
    centre="""def centre(x):
    if x.shape == (2, 3):
        return x - x.mean(-1, keepdim=True)
    y = torch.randn(5, 7, generator=probe.generator("centre"), dtype=torch.float64)
    return y - y.mean(-1, keepdim=True)""",
)

cheat(
    "writes_what_is_then_expected",
    centre="""def centre(x):
    return x - x.mean(-1, keepdim=True) if x.shape == (2, 3) else x.zero_()""",
)

# --- the line to the tests, taken over

LINE = """import gc, json, os, struct, threading, time
from grading.runner.learner import Server
agent = next(a for a in gc.get_objects() if type(a) is Server)

def frame(header, blob=b""):
    text = json.dumps(header).encode()
    return struct.pack("!IQ", len(text), len(blob)) + text + blob
"""
ZEROS = {"tensor": ["float64", [2, 3], 48, False]}


def forged(name: str, reply: str, **more):
    """Enter a cheat that answers every request of the tests with this frame."""
    code = f"""{LINE}
def answered(header, body, blobs):
    {reply}
usual, agent._do = agent._do, lambda h, b, blobs: (
    usual(h, b, blobs) if h["do"] == "cell" else answered(h, b, blobs))"""
    more.setdefault("shout", GUESSES["shout"])
    cheat(name, code, **{"score": 0} | more)  # the honest part is answered so too


forged("answers_nothing", "return {}")
forged("answers_with_lists", "return {'result': [], 'names': [], 'changed': {}, 'raised': []}")
forged("claims_success", "return {'result': None, 'passed': True, 'score': 100, 'outputs': []}")
forged(
    "brings_other_names",
    """return {"names": {name: 1 for name in (
        "probe", "torch", "Probe", "two_rows", "__builtins__", "print", "centre")}, "result": 1}""",
)
forged(
    "forges_handles",
    """return {"names": {n: {"reference": {"handle": 10**9, "type": "x"}} for n in h.get(
        "names", [])}, "result": {"reference": {"handle": -1, "type": "Tensor"}}}""".replace(
        "h.", "header."
    ),
)
forged(
    "forges_callbacks", "return {'names': {'centre': {'reference': {'back': 0}}}, 'callback': 3}"
)
forged("calls_back_without_end", "return {'callback': 0, 'arguments': None}")
forged(
    "claims_a_shape",
    f"""blobs.append(bytes(48))
    tree = {ZEROS}
    return {{"names": {{"centre": tree}}, "result": tree, "changed": [[1, 48]]}}""",
)
forged(
    "names_an_odd_dtype",
    """comma = {"array": [",", [1], 8]}
    blobs.append(bytes(8))
    return {"names": {name: comma for name in header.get("names", [])}, "result": comma}""",
)
forged(
    "claims_a_huge_shape",
    """return {"result": {"tensor": ["float64", [2**39, 2**39], 0, False]},
        "names": {}, "changed": [[1, 2**40]]}""",
)
forged(
    "sends_endless_numbers",
    """agent.connection.sendall(struct.pack("!IQ", 2**31, 2**60))
    time.sleep(100)""",
)
forged(
    "drips",
    """agent.connection.send(struct.pack("!IQ", 10**6, 0))
    while True:
        agent.connection.send(b"\\0")
        time.sleep(0.01)""",
)
forged("sends_rubbish", "agent.connection.sendall(os.urandom(10**6))\n    return {}")
forged(
    "sends_deep_rubbish",
    """text = b"[" * 10**6
    agent.connection.sendall(struct.pack("!IQ", len(text), 0) + text)
    return {}""",
)
forged(
    "collides",
    """same = {"set": [k * (2**61 - 1) for k in range(300_000)]}
    return {"names": {"centre": same}} if header["do"] == "names" else {"result": 1}""",
)
forged(
    "deep_answer",
    """tree = 1
    for _ in range(400):
        tree = {"list": [tree]}
    return {"names": {"centre": tree}, "result": tree, "printed": tree}""",
)
forged(
    "odd_exceptions",
    """return {"names": {"centre": {"reference": {"handle": 0, "type": "f"}}},
        "raised": {"type": "Exit", "kinds": ["SystemExit", "KeyboardInterrupt", "print", "eval"],
                   "message": "x", "place": [float("inf"), 2, 3]}}""",
)
cheat(
    "writes_frames_ahead",
    f"""{LINE}
fds = [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{{n}}")]
fd = next(int(n) for n in fds if "socket" in os.readlink(f"/proc/self/fd/{{n}}"))
for _ in range(50):
    os.write(fd, frame({{"outputs": [], "failed": False, "names": {{}}, "result": None}}))
print("sent")""",
    score=0,
)
cheat(
    "writes_from_a_thread",
    f"""{LINE}
def write():
    while True:
        try:
            agent.connection.sendall(frame({{"result": None, "names": {{}}, "outputs": []}}))
        except BaseException:
            pass
        time.sleep(0.001)
threading.Thread(target=write, daemon=True).start()""",
    score=0,
)
cheat(
    "changes_what_was_passed",
    f"""{LINE}
usual = agent._gradients
def gradients(request, arguments):
    args, upstream, part = arguments
    with torch.no_grad():
        args[0].zero_(); upstream.zero_()
    return True, [torch.zeros_like(upstream)]
agent._gradients = gradients""",
    square="def square(x):\n    return (x * x).detach()",
)
cheat(
    "breaks_its_outputs",
    f"""{LINE}
deep = 1
for _ in range(900):
    deep = [deep]
agent._cell = lambda source: {{"outputs": [
    {{"output_type": "error", "ename": deep, "evalue": deep, "traceback": [deep] * 200}},
    {{"output_type": "stream", "text": deep}}, 5, {{}}, {{"output_type": "display_data", "data": {{
        "text/plain": "x", "text/html": "<script>alert(1)</script>",
        "image/png": "\\"><script>alert(2)</script>"}}}}]}}""",
    score=0,  # its own later cells do not run
)


# --- grading them all


@pytest.fixture(scope="module")
def listener():
    """A server of this machine; it counts who comes."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                came.append(connection)
                connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)


def _listing(root: Path) -> dict[str, tuple[int, float]]:
    results = {}
    for path in root.rglob("*"):
        if not {".git", ".venv", "__pycache__", ".pytest_cache", ".hypothesis"} & set(path.parts):
            results[str(path)] = (path.lstat().st_mode, path.lstat().st_size)
    return results


@pytest.fixture(scope="module")
def graded(request, tmp_path_factory, listener):
    """A folder in which the cheats that this run asks for are handed in and graded."""
    folder = Folder(tmp_path_factory.mktemp("cheats"), NAME)
    folder.publish(notebook())
    config = folder.root / "nbgrader_config.py"
    config.write_text(config.read_text() + LIMITS)
    folder.hand_in("honest", notebook(SOLUTIONS))
    folder.hand_in("guesses", notebook(GUESSES))
    folder.cheats = asked_for(request, "learner")
    for learner in folder.cheats:
        text = json.dumps(notebook(CHEATS[learner].cells)).replace("PORT", str(listener[0]))
        folder.hand_in(learner, text.encode())
    if "plants_configuration" in folder.cheats:
        for name in ("nbgrader_config.py", "sitecustomize.py", "torch.py", "conftest.py"):
            folder.path("plants_configuration").with_name(name).write_text("raise SystemExit")
    folder.before = _listing(ROOT) | _listing(folder.root / "submitted")
    folder.code = folder.grade("--jobs", "3")
    return folder


def test_there_are_enough():
    assert len(CHEATS) >= 30


@HALVES
def test_honest_work_counts_in_full(graded, half):
    assert float(graded.table()["honest"]["score"]) == sum(POINTS.values())
    assert float(graded.table()["guesses"]["score"]) == HONEST


@HALVES
def test_the_batch_ends_and_all_are_settled(graded, half):
    assert graded.code == 0
    assert set(graded.table()) == {*graded.cheats, "honest", "guesses"}


@pytest.mark.parametrize("learner", some_now(CHEATS, list(CHEATS)[2::3]))
def test_a_cheat_gets_what_its_honest_work_deserves(graded, learner):
    entry = CHEATS[learner]
    row = graded.table()[learner]
    assert (float(row["score"]), row["status"]) == (entry.score, "graded"), row["reason"]
    assert graded.gradebook()[learner] == entry.score
    assert entry.shown in re.sub(r"<[^>]+>", "", graded.page(learner))


@HALVES
def test_pages_hold_no_hidden_test_and_no_script(graded, half):
    for learner in graded.cheats:
        page = graded.page(learner)
        assert "<script" not in page.lower()
        assert "x.mean(-1, keepdim=True)\n    probe.close" not in page


@HALVES
def test_nothing_outside_changed(graded, listener, half):
    assert _listing(ROOT) | _listing(graded.root / "submitted") == graded.before
    assert not listener[1]


@HALVES
def test_no_daemon_is_left(graded, half):
    assert graded.code == 0
    for process in psutil.process_iter(["cmdline"]):
        assert "97531" not in (process.info["cmdline"] or ())
