"""Run the cells of one submission, and decide what of their output counts.

This is the step that a sandbox will replace. Today the cells run in an ordinary kernel, **with the
rights of whoever grades**, and the tests run in the same kernel as the code they test.
"""

import tempfile
import time

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from nbgrader.utils import is_grade
from traitlets import Float
from traitlets.config import Config

from grading.intake import Reject


class RunCells(Execute):
    """nbgrader's execution with a limit on the whole notebook, and reasons in plain words."""

    total_timeout = Float(300.0, help="seconds that all cells together may take").tag(config=True)

    _deadline = 0.0

    def preprocess(self, nb: NotebookNode, resources: dict, km=None) -> tuple[NotebookNode, dict]:
        self._deadline = time.monotonic() + self.total_timeout
        # A learner's code has nothing to tidy up: waiting for it costs half a second each.
        self.shutdown_kernel = "immediate"
        # Sockets in a folder of our own: no other user of the machine can talk to the kernel.
        with tempfile.TemporaryDirectory(prefix="k-") as folder:
            sockets = {"transport": "ipc", "ip": f"{folder}/s"}
            sockets["connection_file"] = f"{folder}/kernel.json"
            self.update_config(Config(KernelManager=sockets))
            return super().preprocess(nb, resources, km)

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int):
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Reject(
                f"The notebook ran for more than {self.total_timeout:.0f} seconds and was stopped "
                f"before cell {index + 1}. Look for a loop that does not end."
            )
        self.timeout = max(1, min(self.timeout, int(left)))
        try:
            return super().preprocess_cell(cell, resources, index)
        except DeadKernelError:
            raise Reject(
                f"Python stopped while cell {index + 1} ran, and nothing after it could be tested. "
                "The cell ends the process, or needs more memory than there is."
            ) from None
        except CellTimeoutError:
            raise Reject(
                f"Cell {index + 1} did not end, and could not be stopped when its time was up. "
                "Nothing after it could be tested."
            ) from None


class KeepVerdict(NbGraderPreprocessor):
    """Let a graded cell's errors alone decide its score.

    nbgrader reads a score from whatever comes first: any text on stderr is zero (a warning in
    correct code), a displayed number is a score. Here a test fails if and only if it raises:
    stderr becomes ordinary text, and a displayed value goes.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int):
        if is_grade(cell) and cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if out.output_type != "execute_result"]
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.name = "stdout"
        return cell, resources
