"""The tenant pages' addresses. No tenant is in any of them: it comes from the session."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from ductor.pages import audit, choosing, joining, keys, members, overview, tasks


class NameConverter(StringConverter):
    """The name of a step."""

    regex = "[A-Za-z][A-Za-z0-9_.:-]{0,127}"


register_converter(NameConverter, "name")

urlpatterns = [
    path("", overview.Overview.as_view(), name="app-overview"),
    path("choose/", choosing.choose, name="app-choose"),
    path("invitations/", joining.show, name="app-invitation"),
    path("invitations/<str:token>/", joining.open_link, name="app-invitation-link"),
    path("tasks/", tasks.TaskList.as_view(), name="app-tasks"),
    path("tasks/<str:task_id>/", tasks.TaskDetail.as_view(), name="app-task"),
    path("tasks/<str:task_id>/cancel/", tasks.TaskCancel.as_view(), name="app-task-cancel"),
    path("tasks/<str:task_id>/steps/<name:step>/<int:attempt>/", tasks.StepDetail.as_view(), name="app-step"),
    path("tasks/<str:task_id>/<slug:part>.json", tasks.TaskDownload.as_view(), name="app-task-download"),
    path("usage/", overview.Usage.as_view(), name="app-usage"),
    path("keys/", keys.KeyList.as_view(), name="app-keys"),
    path("keys/<str:key_id>/revoke/", keys.KeyRevoke.as_view(), name="app-key-revoke"),
    path("members/", members.MemberList.as_view(), name="app-members"),
    path("members/<str:member_id>/role/", members.MemberRole.as_view(), name="app-member-role"),
    path("members/<str:member_id>/remove/", members.MemberRemove.as_view(), name="app-member-remove"),
    path(
        "members/invitations/<str:invitation_id>/revoke/",
        members.InvitationRevoke.as_view(),
        name="app-invitation-revoke",
    ),
    path("audit/", audit.Audit.as_view(), name="app-audit"),
]
