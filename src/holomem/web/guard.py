"""Who may ask: names that the server goes by, pages that it made itself, and people who know the token."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from email.message import Message
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

__all__ = ["COOKIE", "Guard", "Refused", "is_loopback"]

COOKIE: Final = "holomem"
SESSIONS: Final = 64  # logins at once; the oldest goes


class Refused(Exception):
    """A request that is not served; `status` is its HTTP status, the reason a key of `texts` or a text."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """The checks of one running server.

    A page of another origin can make a browser send requests here, but it can neither read the answers nor know
    `form_token`, which every form of ours holds; a name that was bound to our address is not one of `names`.
    """

    def __init__(self, names: tuple[str, ...], token: str | None) -> None:
        self.names = frozenset(name.lower() for name in names)
        self.form_token = secrets.token_urlsafe(24)
        self._token = token
        self._sessions: list[str] = []

    def check(self, method: str, headers: Message) -> None:
        """Raises Refused unless the request is for us and from no foreign page."""
        hosts, origins = headers.get_all("Host", []), headers.get_all("Origin", [])
        host, origin = (hosts or [""])[0], origins[0] if origins else None
        if len(hosts) != 1 or _name(host) not in self.names:
            raise Refused(403, "strange_name")
        if len(origins) > 1:
            raise Refused(403, "another_page")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(403, "another_page")
        site = headers.get("Sec-Fetch-Site", "none")
        is_visit = method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"
        if site not in ("same-origin", "none") and not is_visit:
            raise Refused(403, "another_page")

    def check_form(self, form: Mapping[str, str], headers: Message) -> None:
        """Raises Refused unless a change comes out of a form of ours."""
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise Refused(403, "no_form_of_ours")
        if not hmac.compare_digest(form.get("token", "").encode(), self.form_token.encode()):
            raise Refused(403, "old_form")

    def knows(self, headers: Message) -> bool:
        """Whether the visitor needs no login, or has one."""
        if self._token is None:
            return True
        try:
            cookie = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and any(hmac.compare_digest(cookie.value, session) for session in self._sessions)

    def login(self, token: str) -> str | None:
        """A new session for whoever knows the token, else None."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        session = secrets.token_urlsafe(24)
        self._sessions = [*self._sessions[1 - SESSIONS :], session]
        return session


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """The name in a Host header; the port may be any, as at the near end of a tunnel."""
    try:
        parts = urlsplit(f"//{host}")
        port_is_sound = parts.port is None or parts.port > 0
    except ValueError:
        return ""
    return (parts.hostname or "") if port_is_sound and parts.username is None and not parts.path else ""
