"""nbgrader's settings: where the course's folders are, and what is never released.

Read by every `nbgrader` command that is run from this folder, and by the formgrader.
"""

import os
import sys
from pathlib import Path

# nbgrader starts `alembic` by its name: let it be found, also where .venv is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

c = get_config()  # noqa: F821 - nbgrader provides it

c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.course_id = "attention-position-cache"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# A .md or .py beside the source would be copied into the release as it is, solutions and all.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "*.md", "*.py"]

# Plug-ins of this course (grading/README.md). `nbgrader autograde` and the formgrader grade as
# `make grade` does: the last lines of this file see to that. Were they missing, RunCells refuses.
if (here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(here)
c.Autograde.sanitize_preprocessors = ["grading.plugins.RunCells"]
c.Autograde.autograde_preprocessors = ["grading.plugins.RunCells"]
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "grading.feedback.HideTests",
]
c.GenerateFeedback.exporter_class = "grading.feedback.FeedbackExporter"
# Through an exchange (docs/hub.md): what learners put in is theirs and no link, and they must be
# able to read what is returned to them.
c.ExchangeFactory.collect = "grading.exchange.Collect"
c.ZipCollectApp.extractor_plugin = "grading.exchange.Extractor"
c.ExchangeFactory.release_feedback = "grading.plugins.ReleaseFeedback"

# Files are read, code is run and scores are written as by `make grade`.
if os.name == "posix":
    import grading.plugins  # found through the path above

    grading.plugins.install()
