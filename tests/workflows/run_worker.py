"""`python -m tests.workflows.run_worker`: a worker that runs turns until there is nothing to claim."""

import os

import django

django.setup()

from workflows.turns import WorkerState, run_turn  # noqa: E402


def main() -> None:
    worker = WorkerState(f"run-worker-{os.getpid()}", ("default",), lambda seconds: None, lambda: False)
    while run_turn(worker=worker).claimed:
        pass
    worker.close()


if __name__ == "__main__":
    main()
