"""From submitted notebooks to scores and feedback: ``python -m grading ASSIGNMENT``.

A submission takes these steps, each in a module of its own:

1. :mod:`grading.submission` finds and reads the file, without trusting it in any way;
2. :mod:`grading.notebook` rebuilds the notebook from ours and says which cells are run;
3. :mod:`grading.evaluate` has them run, scores what comes out, and has the page made
   (:mod:`grading.feedback`); the runner (:mod:`grading.runner`) keeps the learner's code in a
   sandbox and the tests outside it;
4. :mod:`grading.gradebook` writes scores, graded copy and page;
5. :mod:`grading.report` writes the CSV and the summary; :mod:`grading.changes` says which scores
   changed, and why.

:mod:`grading.batch` is the loop: evaluation happens several at a time, one process writes.
:mod:`grading.course` knows the folders, :mod:`grading.storage` what is kept in ``progress/`` and
what a machine can refuse, :mod:`grading.plugins` what nbgrader calls. :mod:`grading.forget` deletes
what there is of a learner.
"""
