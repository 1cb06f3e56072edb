"""WORK: definitions, tasks, steps, the fair order, claims and leases.

Picture: `start()` inserts task rows and one admission row; at commit a deferred trigger holds the tenant's limits and
moves its counters and its turn. A worker's turn claims a batch in tenant-fair order under leases with fencing tokens,
runs handlers outside any transaction, records steps under the claim, and finishes the whole batch in one call. Every
move of a task is one SQL function (`sql/<name>_v01.sql`); Python holds the story around it.

Floors: faces (`api/`) → verbs (`admission`, `claims`, `recovery`, `cancelling`, `starting`) → reads (`queries`) →
tables (`models`, `states`) → facts (`errors`). `turns`, `engine`, `execution`, `heartbeats` and `wakeup` are what a
worker process runs.

Invariants: a token rises by one with each claim and never falls; whoever writes under ownership hands over a `Claim`
and is refused (`StaleClaim`, or listed as stale) once it no longer holds; a terminal state is final; counters equal
`count(*)` after every commit. Lock order: load → turn → partition → task; a claim waits for nobody.

Failure: a worker that dies lets its leases run out; the tasks come back with a higher token and run alone. A database
that answers nothing leaves nothing acknowledged in memory.
"""
