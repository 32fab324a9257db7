"""What several tests of the course read."""

import importlib.util
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the models' code in the package transformers."""
    spec = importlib.util.find_spec("transformers")
    if spec is None:
        reason = "transformers is not installed: it comes with the extra `pretrained`"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return Path(spec.origin).parent / "models"
