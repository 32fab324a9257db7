"""From submitted notebooks to scores and feedback: ``python -m grading ASSIGNMENT``.

One submission at a time goes through these steps, each in a module of its own:

1. :mod:`grading.intake` finds and reads the file, without trusting it in any way;
2. :mod:`grading.sanitize` throws the learner's metadata away and rebuilds it from ours;
3. :mod:`grading.execute` runs the cells;
4. :mod:`grading.record` writes scores into nbgrader's gradebook, and what happened into a record;
5. :mod:`grading.feedback` writes the page for the learner, without the hidden tests;
6. :mod:`grading.report` writes the CSV and the summary.

:mod:`grading.batch` holds the loop. Nothing here runs submitted code apart from ``execute``.

**Submitted code runs with the rights of whoever grades**: it can read, change and send anything
that they can. Until the cells run in a sandbox, grade only submissions that you trust; the command
refuses to start without ``--trust-submissions``.
"""
