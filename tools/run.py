"""Start a command of the course: ``python tools/run.py tools.book --serve``.

Every recipe of the Makefile starts here. The arguments are a module, and what it is to be told; it
runs as under ``python -m``, but Ctrl-C ends it in good order (tools/stop.py).

This file is in the syntax that Python 2.7 and 3.4 have too, so that an old Python gets as far as
the sentence that says what is wrong: no annotations, no f-strings, nothing imported that is newer.
"""

import os
import sys

OLD = "Python 3.11 or newer is needed, this is "
REMEDY = ": install it, or say `make PYTHON=/path/to/python3.11 ...`\n"


def main(arguments):
    if sys.version_info < (3, 11):  # noqa: UP036 - run by whatever Python there is
        sys.stderr.write(OLD + sys.version.split()[0] + REMEDY)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    # As under `python -m` in the course's folder: its modules, not those beside this file.
    sys.path[:] = [os.path.dirname(here)] + [path for path in sys.path if path != here]
    from tools import stop

    return stop.run(arguments[0], arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
