"""`manage.py up`: one command that prepares the database, runs every process of Ductor and shows it at work.

    session.py     the order of the acts, from the lock to the last process's end
    supervisor.py  child processes: start, ready, watch, stop
    provision.py   the two demo tenants and their keys, made by the owner's process
    demo.py        the demo job: start it, follow it, show what it did
    demo_run.py    the demo as it is shown: keys, live bars, table
    options.py     the flags

The session process looks at the database as the operator does; what only the owner may do runs in processes of its own.
"""


class UpFailed(Exception):
    """`up` can't go on; the message is one line that says why and what to do."""


class Stopped(Exception):
    """SIGTERM or Ctrl-C asked `up` to end."""

    def __init__(self, number: int) -> None:
        self.number = number
