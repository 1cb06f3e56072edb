"""Found like every app's `workflows`: declares a workflow for each function that django-q2's interface may run."""

from ductor.contrib.q2 import schedules  # noqa: F401  (declares the system's own workflow)
from ductor.contrib.q2.functions import discover

discover()
