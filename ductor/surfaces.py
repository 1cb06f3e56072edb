"""Which paths of the surfaces answer whom: with an API key, with a session, or with neither."""

# What answers without any credential. /metrics asks for a token of its own and exists on the operator surface only;
# the pages of signing in are where a session begins.
PUBLIC_PATHS = frozenset({"/", "/health/live", "/health/ready", "/metrics", "/api/schema"})
PUBLIC_PREFIXES = ("/problems/", "/accounts/", "/static/", "/api/docs/")

# Pages for people: they have sessions and forms. All else knows no cookie.
PAGE_PREFIXES = ("/app/", "/accounts/", "/admin/")

# Pages before a tenant is chosen.
CHOOSE_PAGE = "/app/choose/"
WITHOUT_TENANT = (CHOOSE_PAGE, "/app/invitations/")


def is_public(path: str) -> bool:
    """Say whether a path answers without a credential."""
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)


def is_page(path: str) -> bool:
    """Say whether a path is a page for people."""
    return path.startswith(PAGE_PREFIXES)
