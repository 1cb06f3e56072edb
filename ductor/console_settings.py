"""How django-unfold draws the operator console: its words, its navigation, its colours."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _item(title: str, icon: str, page: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{page}")}


def _styles(request: Any) -> str:
    return static("console/console.css")


def _scripts(request: Any) -> str:
    return static("console/live.js")


def _icon(request: Any) -> str:
    return static("ductor/icon.svg")


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Ductor operators",
    "SITE_HEADER": "Ductor",
    "SITE_SUBHEADER": "Operators",
    "SITE_SYMBOL": "account_tree",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _icon}],
    "SITE_URL": None,
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [_styles],
    "SCRIPTS": [_scripts],
    "ACCOUNT": {
        "navigation": [
            {"title": "Second factors", "link": reverse_lazy("mfa_index")},
            {"title": "Password", "link": reverse_lazy("account_change_password")},
        ]
    },
    "COMMAND": {"search_models": False, "show_history": False},
    "COLORS": {
        # Unfold's own are too faint on its darker grounds.
        "font": {"subtle-light": "var(--color-base-600)"},
        "primary": {
            "50": "oklch(97% .014 220)",
            "100": "oklch(94% .03 220)",
            "200": "oklch(88% .06 222)",
            "300": "oklch(80% .09 224)",
            "400": "oklch(71% .11 228)",
            "500": "oklch(60% .12 232)",
            "600": "oklch(49% .11 236)",
            "700": "oklch(43% .1 238)",
            "800": "oklch(37% .08 240)",
            "900": "oklch(32% .07 242)",
            "950": "oklch(24% .05 244)",
        },
    },
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "show_all_applications": False,
        "navigation": [
            {
                "title": "Platform",
                "items": [
                    _item("Overview", "monitoring", "index"),
                    _item("Operators", "badge", "operators"),
                    _item("Audit", "history", "platform-audit"),
                ],
            },
            {
                "title": "Customers",
                "separator": True,
                "items": [_item("Tenants", "apartment", "tenants"), _item("Policies", "tune", "policies")],
            },
        ],
    },
}
