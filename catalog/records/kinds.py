"""Kinds of records, by their tables: what a reading names in place of SQLAlchemy's classes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from catalog.records import policy_tables, question_tables, tables, user_tables
    from catalog.records.automation import tables as automation

Record = TypeVar("Record")


@dataclass(frozen=True)
class Kind(Generic[Record]):
    """Records of one table."""

    table: str


SOURCES: "Kind[tables.Source]" = Kind("sources")
SCANS: "Kind[tables.Scan]" = Kind("scans")
DATASETS: "Kind[tables.Dataset]" = Kind("datasets")
STAGINGS: "Kind[tables.Staging]" = Kind("stagings")
JOBS: "Kind[tables.Job]" = Kind("jobs")
TASK_MOVES: "Kind[tables.TaskMove]" = Kind("task_moves")
USERS: "Kind[user_tables.User]" = Kind("users")
TOKENS: "Kind[user_tables.Token]" = Kind("tokens")
COLLECTIONS: "Kind[user_tables.Collection]" = Kind("collections")
COLLECTION_USERS: "Kind[user_tables.CollectionUser]" = Kind("collection_users")
AUDIT: "Kind[user_tables.AuditEntry]" = Kind("audit")
POLICIES: "Kind[policy_tables.Policy]" = Kind("policies")
POLICY_RUNS: "Kind[policy_tables.PolicyRun]" = Kind("policy_runs")
REGEXES: "Kind[policy_tables.Regex]" = Kind("regexes")
TRIGGERS: "Kind[automation.Trigger]" = Kind("triggers")
TRIGGER_RUNS: "Kind[automation.TriggerRun]" = Kind("trigger_runs")
WEBHOOKS: "Kind[automation.Webhook]" = Kind("webhooks")
WEBHOOK_DELIVERIES: "Kind[automation.WebhookDelivery]" = Kind("webhook_deliveries")
SAVED_QUESTIONS: "Kind[question_tables.SavedQuestion]" = Kind("saved_questions")
QUESTION_LOOKS: "Kind[question_tables.QuestionLook]" = Kind("question_looks")
