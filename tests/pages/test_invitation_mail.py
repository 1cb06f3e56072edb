"""The mail with an invitation's link: to the invited address alone, and never the reason why a page fails."""

from collections.abc import Iterator
from datetime import UTC, datetime
from smtplib import SMTPServerDisconnected
from typing import Any
from unittest.mock import patch

import pytest
from django.core import mail
from django.test import override_settings

from ductor.addresses import base_url
from ductor.cluster_settings import SettingInvalid
from ductor.invitation_mail import mail_invitation
from tenants.identity import new_id
from tenants.invitations import InvitationView

TOKEN = "t" * 43
INVITATION = InvitationView(
    new_id(), "new@example.com", "viewer", datetime.now(UTC), datetime(2030, 1, 31, 12, tzinfo=UTC), None, None
)


@pytest.fixture
def outbox() -> Iterator[list[Any]]:
    backend = "django.core.mail.backends.locmem.EmailBackend"
    with override_settings(EMAIL_BACKEND=backend, DUCTOR_BASE_URL="https://ductor.example.com"):
        mail.outbox = []
        yield mail.outbox


def test_the_link_goes_to_the_invited_address_and_says_who_invites_as_what(outbox: list[Any]) -> None:
    assert mail_invitation(invitation=INVITATION, token=TOKEN, tenant="Acme & Söhne")
    [sent] = outbox
    assert (sent.to, sent.cc, sent.bcc) == (["new@example.com"], [], [])
    assert sent.subject == "Invitation to Acme & Söhne on Ductor"
    assert sent.body.count(f"https://ductor.example.com/app/invitations/{TOKEN}/\n") == 1
    assert "You are invited to Acme & Söhne on Ductor, as viewer." in sent.body
    assert "31 January 2030, 12:00 UTC" in sent.body


@pytest.mark.parametrize("error", [SMTPServerDisconnected("gone"), ConnectionRefusedError("no"), TimeoutError("slow")])
def test_a_mail_server_that_fails_is_told_and_logged_without_the_token(
    outbox: list[Any], error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with patch("django.core.mail.backends.locmem.EmailBackend.send_messages", side_effect=error):
        assert not mail_invitation(invitation=INVITATION, token=TOKEN, tenant="acme")
    assert outbox == []
    assert "invitation_mail_failed" in caplog.text
    assert TOKEN not in caplog.text


def test_links_begin_with_the_named_address_or_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUCTOR_BASE_URL", raising=False)
    monkeypatch.setenv("DUCTOR_PORT", "9000")
    assert base_url() == "http://localhost:9000"
    monkeypatch.setenv("DUCTOR_BASE_URL", "https://ductor.example.com/")
    assert base_url() == "https://ductor.example.com"


@pytest.mark.parametrize("address", ["example.com", "ftp://x", "https://x/app", "https://", "javascript:x", "x y"])
def test_what_is_no_address_of_a_host_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("DUCTOR_BASE_URL", address)
    with pytest.raises(SettingInvalid, match="DUCTOR_BASE_URL"):
        base_url()
