from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """The app of accounts."""

    name = "tenants.people"
    label = "people"

    def ready(self) -> None:
        """Connect what happens when somebody signs in or sets a second factor up."""
        from tenants.people import second_factor, upkeep  # noqa: F401
