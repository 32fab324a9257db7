"""Return feedback through nbgrader's exchange, so that its reader can read it."""

from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback


class ReleaseFeedback(ExchangeReleaseFeedback):
    """Pages are written for their owner's eyes (600), and nbgrader copies that along.

    In the exchange they are the instructor's files and learners' to read. Nobody can list the
    folder, and a page's name follows from a secret that only its learner has.
    """

    def copy_files(self) -> None:
        super().copy_files()
        for page in Path(self.dest_path).glob("*.html"):
            page.chmod(0o644)
