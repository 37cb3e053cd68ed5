"""Runs the migrations on the connection that RecordStore hands over."""

from alembic import context

from catalog.records.tables import Base

connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("migrations are run by catalog.records.store.RecordStore")
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
