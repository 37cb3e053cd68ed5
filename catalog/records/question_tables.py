"""SQLAlchemy tables of saved questions, and of what users saw of others'."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from catalog.records.tables import Base
from catalog.values import now


class SavedQuestion(Base):
    """A question under a name, with the number of its frames when its owner looked last."""

    __tablename__ = "saved_questions"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    # As JSON of query.question.question.
    question: Mapped[dict[str, Any]] = mapped_column(JSON)
    # Whether others see it.
    shared: Mapped[bool] = mapped_column(default=False)
    # Frames that its owner saw last, of which snapshot, and when.
    frames: Mapped[int] = mapped_column(BigInteger)
    snapshot: Mapped[int] = mapped_column(BigInteger)
    counted: Mapped[datetime] = mapped_column(default=now)
    owner: Mapped[str] = mapped_column(String(128))
    # Which user of that name (catalog.values).
    account: Mapped[str] = mapped_column(String(64))
    created: Mapped[datetime] = mapped_column(default=now)


class QuestionLook(Base):
    """The number of a shared question's frames when another user than its owner looked last."""

    __tablename__ = "question_looks"

    question_id: Mapped[int] = mapped_column(
        ForeignKey("saved_questions.id", ondelete="CASCADE"), primary_key=True
    )
    # Which user of that name (catalog.values).
    account: Mapped[str] = mapped_column(String(64), primary_key=True, index=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    # Frames that the user saw last, of which snapshot, and when.
    frames: Mapped[int] = mapped_column(BigInteger)
    snapshot: Mapped[int] = mapped_column(BigInteger)
    counted: Mapped[datetime] = mapped_column(default=now)
