"""The ASGI application of both surfaces; `DUCTOR_ROLE` says which one a process serves."""

import gc
import logging

import django

django.setup(set_prefix=False)

# These imports stand after the app registry is ready, and the refusal before the first request: a server whose role
# bypasses row security must not come up at all.
from ductor.bodies import BodyLimit  # noqa: E402
from ductor.handler import OneThreadHandler  # noqa: E402
from tenants.api.parsing import MAX_BODY_BYTES  # noqa: E402
from tenants.db.roles import refuse_unsafe_role  # noqa: E402

refuse_unsafe_role()
logging.getLogger().setLevel(logging.INFO)
application = BodyLimit(OneThreadHandler(), MAX_BODY_BYTES)
# What has been loaded by now stays: the collector need not walk over it again and again while requests wait.
gc.collect()
gc.freeze()
