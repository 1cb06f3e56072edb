"""MONEY: budgets, reservations and immutable facts per tenant and resource.

The room between work and the boundary: `workflows` reserves here before it dispatches and settles after, inside its
own transactions; `ledger` knows holders and fencing tokens and never a task. It wakes nobody: what frees budget leaves
a row, and the claim reads it. Imports go down to `tenants` only.
"""
