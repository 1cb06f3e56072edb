"""JSON in place of django-q2's pickles.

A pickle runs code where it is read, so whoever can write a row would run code in every process that looks at it.
"""

import json
from typing import Any

from django.db.models import Model
from picklefield.fields import PickledObjectField


class JsonTextField(PickledObjectField):
    """A pickled field's column holding JSON text; what is no JSON reads as None, never as a pickle."""

    def deconstruct(self) -> Any:
        """Name the library's own class: its migrations know no other, and the column is the same."""
        name, _, args, kwargs = super().deconstruct()
        return name, f"{PickledObjectField.__module__}.{PickledObjectField.__name__}", args, kwargs

    def to_python(self, value: Any) -> Any:
        """Return the value itself: only `from_db_value` decodes."""
        return value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return decode(value)

    def pre_save(self, model_instance: Model, add: bool) -> Any:
        return getattr(model_instance, self.attname)

    def get_db_prep_value(self, value: Any, connection: Any = None, prepared: bool = False) -> Any:
        return None if value is None else encode(value)


def encode(value: Any) -> str:
    """Return JSON text that PostgreSQL can store.

    Raises:
        TypeError, ValueError: `value` is no JSON.
    """
    return json.dumps(value, allow_nan=False)


def decode(text: str | None) -> Any:
    """Return what `encode` stored; None where it was not `encode` that wrote it."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def keep_json(model: type[Model]) -> None:
    """Have every pickled field of a library's model keep JSON."""
    for field in model._meta.get_fields():
        if type(field) is PickledObjectField:
            field.__class__ = JsonTextField
