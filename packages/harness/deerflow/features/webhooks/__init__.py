"""Webhooks: the address that a run's creator gave is called when the run has ended."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from deerflow.capability import AskedRun, Capability
from deerflow.features.webhooks.job import WEBHOOK, Describe, WebhookJob, WebhookPolicy, enqueue_webhook
from deerflow.identity import Principal
from deerflow.runs.view import run_view
from deerflow.storage.runs import Run
from deerflow.storage.tables import utc_now

__all__ = ["WebhookPolicy", "Webhooks"]


class Webhooks(Capability):
    """Args: describe: returns the JSON-able body for owner and run id; NotFoundError if the run is gone."""

    name = "webhooks"
    needs_server = True

    def __init__(self, policy: WebhookPolicy, describe: Describe) -> None:
        self._policy = policy
        self.jobs = {WEBHOOK: WebhookJob(describe, policy)}

    async def admit(self, asked: AskedRun) -> None:
        if asked.webhook is not None:
            self._policy.check(asked.webhook)

    def run_closed(self, connection: Connection, run: Run, *, is_undone: bool) -> datetime | None:
        if not (url := run.kwargs["request"].get("webhook")):
            return None
        shown = {**run_view(run), "values": {}} if is_undone else None
        enqueue_webhook(connection, Principal(run.user_id, source="internal"), run.run_id, url, undone=shown)
        return utc_now()
