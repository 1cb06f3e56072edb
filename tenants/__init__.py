"""THE BOUNDARY: who a tenant is, how one is attached, and the only door to PostgreSQL.

A tenant is *attached* (`scope.attach`) for a whole request or tick. A *scope* (`scope.tenant_scope`) is a transaction
of the attached tenant: the engine in `tenants.db` sends `ductor.tenant_id` with it, transaction-local, and refuses
bare queries on tenant tables. Two guards stand one behind the other and neither trusts the other: the manager fails
closed in Python, the row policy fails closed in PostgreSQL.

Floors: faces (commands in `ductor`) → verbs (`provisioning`, `policy`, `keys`, `queues`, `audit`) → reads (`queries`,
`authentication`) → tables (`models`) → facts (`errors`, `identity`, `principals`). `tenants` also owns the load and
turn rows, since limits and freezes change them; other apps move them through `tenants_move_work` only.

Failure: no tenant attached is `ScopeMissing`, another tenant inside a scope is `ScopeConflict`; a database that can't
be reached is `Unavailable`. None of them ever turns into "all rows" or "no rows".
"""
