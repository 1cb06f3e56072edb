"""What every HTTP face of every app shares: credentials, scopes, strict requests, cursors.

The face's contract: the tenant is the attached one (`ductor.middleware` attaches the key's), a request that says
more or other than it may is refused with every fault named by its place, and refusals are raised as typed errors,
which the composition root turns into `application/problem+json`.
"""
