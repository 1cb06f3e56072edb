"""The operator console at `/admin/`: views of the operator surface, drawn with django-unfold.

No model is registered: Django's generic pages (change lists, forms, autocomplete, history) know nothing of verbs,
reasons and tenants. Each page here is a view over reads, each act a verb with a reason. A page about one tenant carries
its slug in the address and attaches it; what is the tenant's own opens for a time, for a stated reason (`access`).
"""
