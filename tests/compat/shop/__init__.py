"""A handler author's app that uses django-q2 and django.tasks instead of workflows."""
