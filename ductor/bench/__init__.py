"""`manage.py ductor bench`: what this machine can do, as figures and ratios of one run.

Runs on a throw-away PostgreSQL of its own with fsync on, never on the operator's data. `limit.sql` is the fixed
reference: tenant-fair batched claim and fenced batch finish with nothing around them. Rooms: `server` (the throw-away
server and the environment), `ground` (tenants and tasks to measure on), `sql` (the limit and the product's own verbs
called from SQL), `queue` (enqueueing, and no-op tasks through a real cluster), `order` (claim latency by number of
tenants, fairness), `http` (single starts through a surface, by the clients of `load`), `latency` (how soon an idle
cluster starts a task), `run` (the process that measures and prints one JSON line).
"""
