"""People who sign in: their accounts, apart from what they are in any tenant.

A `Person` is an e-mail address with a password and second factors (django-allauth's tables stand beside it). It belongs
to no tenant: what makes somebody act in one is a row of `tenants_member`, looked up at every request.

The tables of this app and of allauth exist twice. Schema `public` holds the people of the tenant surface. Schema
`operators` holds those of the operator surface, whose database role looks there first; the tenant surface's role may
not use that schema at all. So the same code signs both in, and nothing that the tenant surface can do, not even with
full SQL power, makes an operator, changes one's password or takes one's second factor (DESIGN D3, ADR 0013).
"""
