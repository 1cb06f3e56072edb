"""What a restore of one tenant does with django-q2's tables (see `tenants.archives.rules`)."""

from tenants.archives.rules import Restored, Rule

RULES = {
    "django_q_task": Restored(Rule.REPLACE, "a result says that a call was made, so it is of one moment with its task"),
    "django_q_schedule": Restored(Rule.REPLACE, "schedules are work; times missed since are made up one by one"),
    "django_q_ormq": Restored(Rule.LIVE, "nothing is ever written there"),
}
