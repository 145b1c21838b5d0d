"""How Alembic runs a migration: on the connection, and in the transaction, of whoever asked for it."""

from alembic import context

given = context.config.attributes

context.configure(
    connection=given["connection"],
    target_metadata=given.get("target_metadata"),
    render_as_batch=True,
    render_item=given.get("render_item"),
    include_object=given.get("include_object"),
)

with context.begin_transaction():
    context.run_migrations()
