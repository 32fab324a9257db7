"""Hypothesis draws the same examples in every run, and a busy machine is no failure.

``pytest tests -m cuda`` runs on a bare machine with a GPU, where torch, numpy and pytest are all
there is: files without a test for a GPU are then not even imported, and where Hypothesis is
missing a stand-in skips what would have drawn.
"""

import gc
import os
import signal
import sys
import types
from pathlib import Path

import pytest

gc.set_threshold(10_000, 50, 100)  # as in tools/book.py; grading's tests take a tenth less time

try:
    from hypothesis import settings
except ModuleNotFoundError:
    if os.environ.get("CI"):
        raise  # nothing may be skipped there

    class Anything:
        """A strategy that nobody will draw from."""

        def __getattr__(self, name):
            return lambda *args, **kwargs: Anything()

        def __or__(self, other):
            return self

    def given(*args, **kwargs):
        return pytest.mark.skip(reason="hypothesis is not installed")

    stand_in = types.ModuleType("hypothesis")
    stand_in.given, stand_in.strategies = given, Anything()
    sys.modules["hypothesis"] = stand_in
else:
    settings.register_profile("course", deadline=None, derandomize=True)
    settings.load_profile("course")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m cuda``, look only at files and folders in which the mark occurs."""
    if config.option.markexpr != "cuda":
        return None
    files = [collection_path] if collection_path.is_file() else collection_path.rglob("test_*.py")
    uses = any("@pytest.mark.cuda" in path.read_text(encoding="utf-8") for path in files)
    return None if uses else True


@pytest.fixture(autouse=True, scope="session")
def ctrl_c():
    """Commands hear Ctrl-C, also where tests run in the background and a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def smollm_file() -> Path:
    """The language model's file. Where it is missing, tests are skipped, and fail under CI."""
    from lib import smollm

    if smollm.find() is None:
        reason = "the language model is not installed: it comes with the extra `pretrained`"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return smollm.find()


@pytest.fixture(scope="session")
def language_model(smollm_file):
    """Model and tokenizer, loaded once for a process: 538 MB. Leave them as they are."""
    from lib import smollm

    return smollm.load(smollm_file)
