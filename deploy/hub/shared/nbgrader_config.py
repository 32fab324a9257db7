"""What every server of the hub tells nbgrader: the course, and where things change hands."""

import os

c = get_config()  # noqa: F821 - nbgrader provides it

c.CourseDirectory.course_id = "attention-position-cache"
c.Exchange.root = os.environ["COURSE_EXCHANGE"]
# On a trial hub all people share one account, which then does not say whose a submission is.
c.ExchangeCollect.check_owner = "COURSE_TRIAL" not in os.environ
