"""The ASGI application of both surfaces; `DUCTOR_ROLE` says which one a process serves."""

from django.core.asgi import get_asgi_application

application = get_asgi_application()

# The import stands after the app registry is ready, and the refusal before the first request: a server whose role
# bypasses row security must not come up at all.
from tenants.db.roles import refuse_unsafe_role  # noqa: E402

refuse_unsafe_role()
