from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The app of accounts."""

    name = "tenants.people"
    label = "people"
