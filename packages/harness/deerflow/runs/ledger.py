"""The idempotency ledger of one run, in the database."""

from __future__ import annotations

from hashlib import blake2b

from sqlalchemy import Connection, delete, insert, select

from deerflow.storage.database import Database
from deerflow.storage.tables import tool_executions as executions


class RunLedger:
    """See :class:`deerflow.context.ToolLedger`."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id

    async def begin(self, tool_call_id: str) -> bool:
        row = self._row(tool_call_id)

        def job(connection: Connection) -> bool:
            known = select(executions.c.call).where(
                executions.c.run_id == row["run_id"], executions.c.call == row["call"]
            )
            if connection.execute(known).first() is not None:
                return False
            connection.execute(insert(executions).values(row))
            return True

        return await self._database.write(job)

    async def forget(self, tool_call_id: str) -> None:
        row = self._row(tool_call_id)
        statement = delete(executions).where(executions.c.run_id == row["run_id"], executions.c.call == row["call"])
        await self._database.write(lambda connection: connection.execute(statement) and None)

    def _row(self, tool_call_id: str) -> dict[str, str]:
        # Short, whatever ids a provider thinks of: each call writes the page anew that its row stands on.
        return {"run_id": self._run_id, "call": blake2b(tool_call_id.encode(), digest_size=16).hexdigest()}
