"""Runs notebooks of strangers: code in a sandbox, tests outside it, a verdict as plain data.

A sealed part: it knows jobs and verdicts (:mod:`grading.runner.job`) and nothing of courses,
learners, scores or nbgrader. README.md says how it works.
"""
