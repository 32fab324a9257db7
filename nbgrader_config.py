"""nbgrader's settings: where the course's folders are, and what is never released.

Read by every `nbgrader` command that is run from this folder, and by the formgrader.
"""

from pathlib import Path

c = get_config()  # noqa: F821 - nbgrader provides it

c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.course_id = "attention-position-cache"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# A .md or .py beside the source would be copied into the release as it is, solutions and all.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "*.md", "*.py"]
