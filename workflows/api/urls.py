"""Routes of the task API, below `/api/v1/`."""

from django.urls import path

from workflows.api import views

urlpatterns = [
    path("tasks", views.TaskList.as_view(), name="tasks"),
    path("tasks/<str:task_id>", views.TaskDetail.as_view(), name="task"),
    path("tasks/<str:task_id>/cancel", views.TaskCancel.as_view(), name="task-cancel"),
]
