"""Settings of every Ductor process.

One module for all of them: what differs between the tenant surface, the operator surface, a cluster and a command
follows from `DUCTOR_ROLE` (web, operator, worker, owner), which also names the database role. All else comes from
environment variables `DUCTOR_*`, `DATABASE_URL` and `DATABASE_DIRECT_URL`.
"""

from pathlib import Path

import environ

from ductor.accounts_settings import ACCOUNT_APPS, ADMIN_APPS, account_settings, operators_database
from ductor.addresses import base_url
from ductor.cluster_settings import api_rate, batch, lease_and_heartbeat, q2_timeout, q_cluster
from ductor.databases import connection_settings, secret_key
from ductor.logging import logging_settings

env = environ.Env()


def _names(variable: str, *default: str) -> list[str]:
    """The comma-separated names in a variable, without the blanks around them."""
    return [name.strip() for name in env.list(variable, default=list(default)) if name.strip()]


BASE_DIR = Path(__file__).resolve().parent.parent
DUCTOR_ROLE = env.str("DUCTOR_ROLE", "operator")
DUCTOR_APPS = _names("DUCTOR_APPS")
DUCTOR_QUEUES = _names("DUCTOR_QUEUES", "default")
DUCTOR_METRICS_TOKEN = env.str("DUCTOR_METRICS_TOKEN", "")
DUCTOR_BASE_URL = base_url()
DUCTOR_LEASE_SECONDS, DUCTOR_HEARTBEAT_SECONDS = lease_and_heartbeat()
DUCTOR_BATCH = batch()
DUCTOR_PROCESS_API_RATE = api_rate()
DUCTOR_Q2_FUNCTIONS = _names("DUCTOR_Q2_FUNCTIONS")
DUCTOR_Q2_TIMEOUT_SECONDS = q2_timeout()
DUCTOR_DIRECT_URL = env.str("DATABASE_DIRECT_URL", "")

DEBUG = False
SECRET_KEY = secret_key(DUCTOR_ROLE)
ALLOWED_HOSTS = _names("DUCTOR_ALLOWED_HOSTS", "localhost", "127.0.0.1", "[::1]", ".localhost")
USE_X_FORWARDED_HOST = False
SECURE_CONTENT_TYPE_NOSNIFF = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

SHARED_APPS = [
    "ductor",
    "tenants",
    "workflows",
    "ledger",
    "retention",
    "django_tenants",
    "django_q",
    "ductor.contrib.q2",
    "django_prometheus",
    "django_typer",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django.contrib.contenttypes",
    *ACCOUNT_APPS,
    *DUCTOR_APPS,
]
# django-tenants asks for at least one app here; this one has no models, so no tenant gets a schema.
TENANT_APPS = ["tenants.schemas"]
INSTALLED_APPS = [*SHARED_APPS, *TENANT_APPS]
if DUCTOR_ROLE in ("operator", "owner"):
    INSTALLED_APPS = [*ADMIN_APPS, *INSTALLED_APPS]

TENANT_MODEL = "tenants.Tenant"
TENANT_DOMAIN_MODEL = "tenants.Domain"
ORIGINAL_BACKEND = "django_prometheus.db.backends.postgresql"
DATABASE_ROUTERS = ["tenants.people.routers.AccountsRouter", "django_tenants.routers.TenantSyncRouter"]
DATABASES = {"default": {"ENGINE": "tenants.db", "ROLE": DUCTOR_ROLE, **connection_settings(DUCTOR_ROLE)}}
if DUCTOR_ROLE == "owner":
    DATABASES["operators"] = {"ENGINE": "tenants.db", "ROLE": "owner", **operators_database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# One cache a kind of process: none may be able to write what another one loads.
_CACHES_BY_ROLE = {"web": "web", "test": "web", "worker": "worker"}
CACHES = {
    "default": {
        "BACKEND": "tenants.sealed_cache.SealedDatabaseCache",
        "LOCATION": f"tenants_cache_{_CACHES_BY_ROLE.get(DUCTOR_ROLE, 'operator')}",
        "KEY_FUNCTION": "tenants.cache.key_function",
        # Attempts to sign in are counted here: a default of 300 rows would let anybody push a count out by many others.
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
}

ROOT_URLCONF = "ductor.urls_operator" if DUCTOR_ROLE == "operator" else "ductor.urls"
ASGI_APPLICATION = "ductor.asgi.application"
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "ductor.middleware.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "ductor.page_middleware.PageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "ductor.tenant_middleware.TenantMiddleware",
    "ductor.rates.RateMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
# Sessions, authentication and messages stand in PageMiddleware, where the admin's checks don't look.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410"]
# So do forgery protection and, in place of X-Frame-Options, the content policy's frame-ancestors.
SILENCED_SYSTEM_CHECKS += ["security.W002", "security.W003"]
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
PROMETHEUS_EXPORT_MIGRATIONS = False
globals().update(account_settings(DUCTOR_ROLE))

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Files are served out of the installed packages and the repository: no collecting step after an installation.
WHITENOISE_USE_FINDERS = True

REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "ductor.problems.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "ductor.openapi.OperationSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenants.api.parsing.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["tenants.api.permissions.DenyByDefault"],
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.1",
    "TITLE": "Ductor",
    "DESCRIPTION": "Durable workflows of one tenant: the key's. The rules for every route stand in docs/api.md.",
    "VERSION": "1",
    "SERVERS": [{"url": "/"}],
    "POSTPROCESSING_HOOKS": ["ductor.openapi.add_components"],
}

if DUCTOR_ROLE in ("operator", "owner"):
    from ductor.console_settings import UNFOLD  # noqa: F401

Q_CLUSTER = q_cluster()
# For django.tasks or django-tasks, where one is there.
TASKS = {
    "default": {"BACKEND": "ductor.contrib.tasks.DuctorBackend"},
    "system": {"BACKEND": "ductor.contrib.tasks.DuctorBackend", "OPTIONS": {"system": True}},
}
LOGGING = logging_settings(DUCTOR_ROLE)
USE_TZ = True
TIME_ZONE = "UTC"
