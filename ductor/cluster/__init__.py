"""`manage.py qcluster`: a django-q2 cluster whose workers fetch their work from PostgreSQL.

    cluster process ── forks ──▶ sentinel ── forks ──▶ worker, worker, …
      ready line, exit code        guard, kills,          turns: claim, run, finish
      health record                seats of the pool

What holds here:

* A process dies with its parent (the kernel sees to it), so no kill leaves anything behind. Tasks of a killed worker
  come back when their leases end; nothing about them is kept in the cluster.
* The processes share flags and timers in plain memory, each written by one of them (`shared`). There is no lock, no
  queue and no pipe that a killed process could leave in a state that stops the others.
* The sentinel touches neither the database nor the cache; whatever hangs there, it guards and drains.
* A stop signal to any process but a worker drains the cluster; to a worker, that worker. Draining takes no new work,
  lets running tasks finish for `drain_seconds`, then releases them and ends. The exit code is 0.
* A worker whose timer has run out is killed and replaced; one that keeps crashing is replaced more and more slowly.
"""
