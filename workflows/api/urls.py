"""Routes of the task API, below `/api/v1/`."""

from django.urls import path

from workflows.api import catalogue, views

urlpatterns = [
    path("tasks", views.TaskList.as_view(), name="tasks"),
    path("tasks/batch", views.TaskBatch.as_view(), name="task-batch"),
    path("tasks/<str:task_id>", views.TaskDetail.as_view(), name="task"),
    path("tasks/<str:task_id>/cancel", views.TaskCancel.as_view(), name="task-cancel"),
    path("workflows", catalogue.WorkflowList.as_view(), name="workflows"),
    path("workflows/<str:name>", catalogue.WorkflowDetail.as_view(), name="workflow"),
]
