"""The chat platforms: what each is called, which settings it needs, and how its adapter is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from deerflow.features.channels.types import Adapter, Misconfigured
from deerflow.security.addresses import Network
from deerflow.security.outbound import Outbound
from deerflow_app.channels.qr_login import QrLogin

Values = Mapping[str, Any]
Open = Callable[[Values, Outbound], Adapter]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a platform, named as in ``channels.<kind>`` of ``config.yaml``. ``label``: the platform's own word."""

    name: str
    label: str
    type: Literal["text", "password", "boolean"] = "text"
    required: bool = True


@dataclass(frozen=True, slots=True)
class Platform:
    """Args:
    is_http: the platform calls us.
    login: the sign-in by QR code that gives the settings.
    """

    title: str
    settings: tuple[Setting, ...]
    make: Open
    is_http: bool = False
    login: Callable[[], QrLogin] | None = None

    def open(self, kind: str, values: Values, outbound: Outbound) -> Adapter:
        """Make the adapter. Raises Misconfigured: a setting is missing."""
        missing = [one for one in self.settings if one.required and not values.get(one.name)]
        if missing:
            names = ", ".join(f"channels.{kind}.{one.name}" for one in missing)
            raise Misconfigured(f"{self.title} needs {names}.")
        return self.make(values, outbound)


def _adapter(module: str, name: str) -> Callable[..., Any]:
    """Return an adapter's class, imported when a connection is opened: most installations use one platform or none."""
    return getattr(import_module(f"deerflow_app.channels.adapters.{module}"), name)


def _given(values: Values, *names: str, **renamed: str) -> dict[str, Any]:
    """Return those of ``values`` that are set, under the names that the adapter has for them."""
    pairs = [*((name, name) for name in names), *((own, name) for own, name in renamed.items())]
    return {own: values[name] for own, name in pairs if values.get(name) not in (None, "")}


def _telegram(values: Values, _: Outbound) -> Adapter:
    return _adapter("telegram", "Telegram")(values["bot_token"], **_given(values, "base_url", rich="rich_messages"))


def _slack(values: Values, _: Outbound) -> Adapter:
    return _adapter("slack", "Slack")(values["bot_token"], values["app_token"], **_given(values, "base_url"))


def _feishu(values: Values, _: Outbound) -> Adapter:
    return _adapter("feishu", "Feishu")(values["app_id"], values["app_secret"], **_given(values, "domain", "streaming"))


def _discord(values: Values, _: Outbound) -> Adapter:
    threads = str(values.get("thread_mode", "true")).lower() not in ("false", "off", "none", "0")
    return _adapter("discord", "Discord")(values["bot_token"], threads=threads, **_given(values, "base_url"))


def _dingtalk(values: Values, _: Outbound) -> Adapter:
    more = _given(values, "card_template_id", "robot_code", "api", "oapi")
    return _adapter("dingtalk", "DingTalk")(values["client_id"], values["client_secret"], **more)


def _wecom(values: Values, _: Outbound) -> Adapter:
    more = _given(values, "url", "working_message")
    return _adapter("wecom", "WeCom")(values["bot_id"], values["bot_secret"], **more)


def _wechat(values: Values, _: Outbound) -> Adapter:
    more = _given(
        values,
        "base_url",
        "cdn_base_url",
        "channel_version",
        "route_tag",
        "polling_timeout",
        bot_id="ilink_bot_id",
        app_id="ilink_app_id",
    )
    return _adapter("wechat", "WeChat")(values["bot_token"], **more)


def _wechat_login() -> QrLogin:
    return _adapter("wechat_login", "WeChatLogin")()


def _mail(values: Values, _: Outbound) -> Adapter:
    server = _adapter("mail_box", "MailServer")
    imap_security, smtp_security = values.get("imap_security") or "tls", values.get("smtp_security") or "starttls"
    imap = server(values["imap_host"], int(values.get("imap_port") or 993), imap_security)
    smtp = server(values["smtp_host"], int(values.get("smtp_port") or 587), smtp_security)
    user = values.get("user") or values["address"]
    more = _given(values, "name", "folder")
    return _adapter("mail", "Mail")(
        values["address"], user, values["password"], imap=imap, smtp=smtp, authserv_id=values["authserv_id"], **more
    )


def _webhook(values: Values, outbound: Outbound) -> Adapter:
    return _adapter("webhook", "Webhook")(values["secret"], str(values.get("url") or ""), outbound)


def _github(values: Values, _: Outbound) -> Adapter:
    return _adapter("github", "GitHub")(values["secret"], values["token"], **_given(values, "login", "base_url"))


_TOKEN = Setting("bot_token", "Bot token", "password")
PLATFORMS: Mapping[str, Platform] = {
    "telegram": Platform("Telegram", (_TOKEN,), _telegram),
    "slack": Platform("Slack", (_TOKEN, Setting("app_token", "App-level token", "password")), _slack),
    "feishu": Platform(
        "Feishu / Lark",
        (
            Setting("app_id", "App ID"),
            Setting("app_secret", "App Secret", "password"),
            Setting("domain", "Domain", required=False),
        ),
        _feishu,
    ),
    "discord": Platform("Discord", (_TOKEN,), _discord),
    "email": Platform(
        "E-mail",
        (
            Setting("address", "Address"),
            Setting("user", "User name", required=False),
            Setting("password", "App password", "password"),
            Setting("imap_host", "IMAP server"),
            Setting("smtp_host", "SMTP server"),
            Setting("authserv_id", "Server in Authentication-Results"),
        ),
        _mail,
    ),
    "webhook": Platform(
        "Webhook",
        (Setting("secret", "Secret", "password"), Setting("url", "Address for answers", required=False)),
        _webhook,
        is_http=True,
    ),
    "github": Platform(
        "GitHub",
        (
            Setting("secret", "Webhook secret", "password"),
            Setting("token", "Access token", "password"),
            Setting("login", "Name that is mentioned", required=False),
        ),
        _github,
        is_http=True,
    ),
    "dingtalk": Platform(
        "DingTalk",
        (
            Setting("client_id", "Client ID"),
            Setting("client_secret", "Client Secret", "password"),
            Setting("card_template_id", "Card template ID", required=False),
        ),
        _dingtalk,
    ),
    "wecom": Platform("WeCom", (Setting("bot_id", "Bot ID"), Setting("bot_secret", "Secret", "password")), _wecom),
    "wechat": Platform("WeChat", (_TOKEN,), _wechat, login=_wechat_login),
}
"""By kind, in the order in which the page offers them."""
GITHUB_SECRET = "GITHUB_WEBHOOK_SECRET"


def makers(
    allow_nets: tuple[str, ...], environ: Mapping[str, str]
) -> dict[str, tuple[Callable[[Values], Adapter], bool]]:
    """Return, by kind, what makes an adapter of settings and secrets, and whether the platform calls us.

    Args:
        allow_nets: networks (CIDR) that answers to webhooks may go to, though they are not public.
    """
    outbound = Outbound(Network("internet", allow_nets=allow_nets), "runs.webhook_allow_nets")

    def maker(kind: str) -> Callable[[Values], Adapter]:
        known = {"secret": environ[GITHUB_SECRET]} if kind == "github" and environ.get(GITHUB_SECRET) else {}
        return lambda values: PLATFORMS[kind].open(kind, {**known, **values}, outbound)

    return {kind: (maker(kind), platform.is_http) for kind, platform in PLATFORMS.items()}
