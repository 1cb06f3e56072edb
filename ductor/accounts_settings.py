"""Settings of signing in, of sessions and of pages, alike on both surfaces but for what keeps them apart."""

from typing import Any

import environ

from ductor.databases import connection_settings, home

env = environ.Env()

ACCOUNT_APPS = [
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "tenants.people",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "django_htmx",
    "csp",
]
ADMIN_APPS = ["unfold", "django.contrib.admin.apps.SimpleAdminConfig"]

_VALIDATION = "django.contrib.auth.password_validation"

# What a page may load and do: its own files, nothing inline, nothing of others. /admin/ has a wider one of its own.
STRICT_POLICY = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
}


def operators_database() -> dict[str, Any]:
    """Return the owner's way to schema `operators`: for migrations, which make tables in the first schema they see."""
    entry = connection_settings("owner")
    return {**entry, "SCHEMA": "operators", "OPTIONS": {**entry["OPTIONS"], "options": "-c search_path=operators"}}


def account_settings(role: str) -> dict[str, Any]:
    """Return Django's and allauth's settings for a process of this role."""
    operator = role == "operator"
    tls = env.bool("DUCTOR_TLS", default=False)
    return {
        **_mail(),
        **_sessions(operator=operator, tls=tls),
        **_transport(tls=tls),
        **_sign_in(operator=operator, tls=tls),
        "CONTENT_SECURITY_POLICY": {"DIRECTIVES": STRICT_POLICY},
        "MESSAGE_STORAGE": "django.contrib.messages.storage.session.SessionStorage",
    }


def _sign_in(*, operator: bool, tls: bool) -> dict[str, Any]:
    return {
        "AUTH_USER_MODEL": "people.Person",
        "AUTHENTICATION_BACKENDS": ["allauth.account.auth_backends.AuthenticationBackend"],
        "AUTH_PASSWORD_VALIDATORS": [
            {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
            {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
            {
                "NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator",
                "OPTIONS": {"user_attributes": ("email", "name")},
            },
            {"NAME": f"{_VALIDATION}.NumericPasswordValidator"},
        ],
        # Seconds that the link in a mail opens the setting of a new password.
        "PASSWORD_RESET_TIMEOUT": 3600,
        "LOGIN_URL": "account_login",
        "LOGIN_REDIRECT_URL": "/admin/" if operator else "/app/",
        "ACCOUNT_ADAPTER": f"tenants.people.adapters.{'Operator' if operator else 'Tenant'}AccountAdapter",
        "ACCOUNT_USER_MODEL_USERNAME_FIELD": None,
        "ACCOUNT_LOGIN_METHODS": {"email"},
        "ACCOUNT_SIGNUP_FIELDS": ["email*", "password1*", "password2*"],
        "ACCOUNT_FORMS": {"signup": "tenants.people.forms.InvitedSignupForm"},
        "ACCOUNT_EMAIL_VERIFICATION": "mandatory",
        "ACCOUNT_EMAIL_SUBJECT_PREFIX": "",
        "ACCOUNT_DEFAULT_HTTP_PROTOCOL": "https" if tls else "http",
        "ACCOUNT_LOGOUT_REDIRECT_URL": "/accounts/login/",
        "ACCOUNT_SESSION_REMEMBER": True,
        "ACCOUNT_REAUTHENTICATION_TIMEOUT": 300,
        # Not by a code in a mail: whoever holds a session may hold the mailbox, too.
        "ACCOUNT_REAUTHENTICATION_METHODS": ("password", "mfa"),
        "MFA_ADAPTER": "tenants.people.adapters.SealedMFAAdapter",
        "MFA_SUPPORTED_TYPES": ["totp", "webauthn", "recovery_codes"],
        "MFA_PASSKEY_LOGIN_ENABLED": True,
        # A phone's clock may be half a minute off; each code is still taken once.
        "MFA_TOTP_TOLERANCE": 1,
        "MFA_TOTP_ISSUER": "Ductor operators" if operator else "Ductor",
        # Browsers keep passkeys for https, and for http on the loopback address.
        "MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN": not tls,
        "MFA_RECOVERY_CODES_SHOW_ONCE": True,
    }


def _sessions(*, operator: bool, tls: bool) -> dict[str, Any]:
    # With TLS, the browser itself holds these cookies to this one host: no sibling of it can plant or read them.
    prefix = ("__Host-" if tls else "") + ("ductor_operator" if operator else "ductor")
    return {
        "SESSION_COOKIE_NAME": f"{prefix}_session",
        "SESSION_COOKIE_AGE": env.int("DUCTOR_SESSION_SECONDS", default=12 * 3600),
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Strict" if operator else "Lax",
        "CSRF_COOKIE_NAME": f"{prefix}_csrf",
        "CSRF_COOKIE_SAMESITE": "Lax",
        "CSRF_FAILURE_VIEW": "ductor.error_pages.csrf_failure",
        "CSRF_TRUSTED_ORIGINS": env.list("DUCTOR_TRUSTED_ORIGINS", default=[]),
    }


def _transport(*, tls: bool) -> dict[str, Any]:
    """With `DUCTOR_TLS` a proxy in front speaks TLS and says so in X-Forwarded-Proto."""
    # Limits on signing in count by address: behind a proxy everybody would share the proxy's.
    proxies = {"ALLAUTH_TRUSTED_PROXY_COUNT": env.int("DUCTOR_TRUSTED_PROXIES", default=1 if tls else 0)}
    if not tls:
        return {**proxies, "SECURE_REFERRER_POLICY": "same-origin"}
    return {
        **proxies,
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_REFERRER_POLICY": "same-origin",
        "SECURE_SSL_REDIRECT": True,
        "SECURE_REDIRECT_EXEMPT": [r"^health/"],
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
        "SECURE_HSTS_SECONDS": 365 * 86_400,
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
        "SECURE_HSTS_PRELOAD": True,
    }


def _mail() -> dict[str, Any]:
    """`DUCTOR_EMAIL_URL` names the mail server; without one, mails are files in the folder `mail` under home()."""
    sender = {"DEFAULT_FROM_EMAIL": env.str("DUCTOR_MAIL_FROM", default="Ductor <ductor@localhost>")}
    if env.str("DUCTOR_EMAIL_URL", default=""):
        return {**sender, **env.email_url("DUCTOR_EMAIL_URL")}
    backend = "django.core.mail.backends.filebased.EmailBackend"
    return {**sender, "EMAIL_BACKEND": backend, "EMAIL_FILE_PATH": str(home() / "mail")}
