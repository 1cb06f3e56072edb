"""Pages by key: a page asks for one row more than it shows, and knows thereby whether there is another. Nothing is
counted."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.http import HttpRequest
from django.utils.http import urlencode

from tenants.errors import NotFound
from tenants.identity import parse_id

PAGE_SIZE = 50
Row = TypeVar("Row")


def cut(request: HttpRequest, rows: Sequence[Row], cursor: str, key: Callable[[Row], Any]) -> tuple[list[Row], str]:
    """Return the rows of this page out of at most PAGE_SIZE + 1, and the address of the next page or ''.

    `cursor` is the query parameter that takes the last row's `key`; all others stay as they are.
    """
    shown = list(rows[:PAGE_SIZE])
    if len(rows) <= PAGE_SIZE:
        return shown, ""
    kept = {name: value for name, value in request.GET.items() if name != cursor and value}
    return shown, "?" + urlencode({**kept, cursor: key(shown[-1])})


def id_from(request: HttpRequest, name: str) -> UUID | None:
    """Return the id in a query parameter, None where it is absent.

    Raises:
        NotFound: it is no id.
    """
    text = request.GET.get(name, "")
    return parse_id(text) if text else None


def chosen(request: HttpRequest, name: str, known: Sequence[str]) -> str | None:
    """Return a query parameter out of a closed list, None where it is absent.

    Raises:
        NotFound: the list does not have it.
    """
    text = request.GET.get(name, "")
    if text and text not in known:
        raise NotFound
    return text or None
