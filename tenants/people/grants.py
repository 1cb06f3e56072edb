"""What each role may do with the accounts: each surface with its own tables, nobody with the other's."""

from tenants.db.roles import OPERATOR, WEB

_EVERY = "select, insert, update, delete"
_ACCOUNTS = (
    "people_person",
    "account_emailaddress",
    "account_emailconfirmation",
    "mfa_authenticator",
    "django_session",
)

TABLES: dict[str, dict[str, str]] = {table: {WEB: _EVERY} for table in _ACCOUNTS}

OPERATORS_TABLES: dict[str, dict[str, str]] = {
    **{table: {OPERATOR: _EVERY} for table in _ACCOUNTS},
    "django_content_type": {OPERATOR: "select"},
    "django_migrations": {OPERATOR: "select"},
}
