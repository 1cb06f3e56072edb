"""django-q2's interface on Ductor's queue: `async_task()`, schedules, results, hooks, groups, iters and chains.

What lies where: `functions` says which functions may run at all, `packages` turns what django-q2 packed into JSON,
`running` is the one step that runs it, `results` keeps django-q2's rows, `schedules` fires what is due. The broker
(`ductor.broker`) is where django-q2 comes in. Nothing here reads a pickle, or follows a dotted path, out of the
database: docs/django-q2.md says why.
"""
