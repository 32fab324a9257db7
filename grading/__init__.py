"""From submitted notebooks to scores and feedback: ``python -m grading ASSIGNMENT``.

One submission at a time goes through these steps, each in a module of its own:

1. :mod:`grading.intake` finds and reads the file, without trusting it in any way;
2. :mod:`grading.sanitize` throws the learner's metadata away and rebuilds it from ours;
3. :mod:`grading.engine` says what is to be run, and has it run: learners' code in a sandbox
   (:mod:`grading.sandbox`, :mod:`grading.agent`), the tests in another process
   (:mod:`grading.judge`, :mod:`grading.standin`), data between them (:mod:`grading.wire`), both
   forked from one process that has imported torch (:mod:`grading.nursery`);
4. :mod:`grading.execute` puts the outputs into the notebook, as a step of nbgrader's;
5. :mod:`grading.record` writes scores into nbgrader's gradebook, and what happened into a record;
6. :mod:`grading.feedback` writes the page for the learner, without the hidden tests;
7. :mod:`grading.report` writes the CSV and the summary.

:mod:`grading.batch` holds the loop: code runs on several submissions at a time, one process writes.
:mod:`grading.faults` says what the machine refuses: full disks, locked gradebooks.
"""
