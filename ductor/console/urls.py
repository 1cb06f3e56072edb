"""Every page of the console: its address below `/admin/`, its view and its name."""

from ductor.console import item_acts, overview, task_pages, tenant_acts, tenant_list, tenant_pages
from ductor.console.access import open_door
from ductor.console.site import View

_TENANT = "t/<slug:slug>/"


def pages() -> list[tuple[str, View, str]]:
    """Return address, view and name of each page."""
    return [
        ("", overview.index, "index"),
        ("live/", overview.live, "live"),
        ("tenants/", tenant_list.tenants, "tenants"),
        ("tenants/new/", tenant_acts.create_tenant_page, "tenant-create"),
        ("policies/", tenant_list.policies, "policies"),
        ("audit/", tenant_list.platform_audit, "platform-audit"),
        ("operators/", tenant_list.operators, "operators"),
        (_TENANT, tenant_pages.detail, "tenant"),
        (f"{_TENANT}open/", open_door, "open"),
        (f"{_TENANT}policy/", tenant_acts.policy_page, "policy"),
        (f"{_TENANT}freeze/", tenant_acts.freeze_page, "freeze"),
        (f"{_TENANT}members/", tenant_pages.members, "members"),
        (f"{_TENANT}members/invite/", tenant_acts.invite_page, "invite"),
        (f"{_TENANT}members/<str:item>/remove/", item_acts.remove_member_page, "member-remove"),
        (f"{_TENANT}invitations/<str:item>/revoke/", item_acts.revoke_invitation_page, "invitation-revoke"),
        (f"{_TENANT}keys/", tenant_pages.keys, "keys"),
        (f"{_TENANT}keys/new/", tenant_acts.create_key_page, "key-create"),
        (f"{_TENANT}keys/<str:item>/revoke/", item_acts.revoke_key_page, "key-revoke"),
        (f"{_TENANT}audit/", tenant_pages.audit, "audit"),
        (f"{_TENANT}tasks/", task_pages.tasks, "tasks"),
        (f"{_TENANT}tasks/<str:item>/", task_pages.task, "task"),
        (f"{_TENANT}tasks/<str:item>/steps/<str:step>/<int:attempt>/", task_pages.step, "step"),
        (f"{_TENANT}tasks/<str:item>/cancel/", item_acts.cancel_page, "task-cancel"),
    ]
