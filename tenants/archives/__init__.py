"""One tenant's rows as a file: what is in it, and what becomes of each table's rows when they are put back.

`rules` says for every tenant table what a restore does with it, `archive` is the file, `copying` moves rows between
tables and file without holding them in memory, `staging` puts staged rows in the place of live ones. The verbs that
know what work is stand in the apps' `restoring`; `ductor.tenant_archives` composes them.
"""
