"""The door to PostgreSQL: Ductor's database engine (`ENGINE = "tenants.db"`).

A subclass of django-tenants' backend over django-prometheus'. django-tenants keeps its state on the connection and
sends a session-level search_path; here the tenant lives in a ContextVar (`tenants.scope`) and the one private hook
`_handle_search_path` sends `ductor.tenant_id` once per transaction with SET LOCAL, which a transaction pooler can't
leak. Modules: `base` (the wrapper), `guard` (bare queries refused), `roles` (unsafe roles refused), `operations`
(migration operations), `functions` (SQL files) and `grants` (what migrate does after them).
"""
