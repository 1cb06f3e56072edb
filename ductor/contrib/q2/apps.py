from django.apps import AppConfig


class Q2Config(AppConfig):
    """See the package docstring. Makes django-q2 keep JSON instead of pickles, and takes its hooks over."""

    name = "ductor.contrib.q2"
    label = "q2"

    def ready(self) -> None:
        from django.db.models.signals import post_save, pre_save
        from django_q.models import Schedule, Task
        from django_q.signals import call_hook, pre_enqueue

        from ductor.contrib.q2 import fields, packages, schedules

        fields.keep_json(Task)
        # It imports whatever dotted path stands in a row; `results` calls the hooks.
        post_save.disconnect(call_hook, sender=Task)
        pre_enqueue.connect(packages.prepare, dispatch_uid="ductor-q2")
        pre_save.connect(schedules.check, sender=Schedule, dispatch_uid="ductor-q2")
