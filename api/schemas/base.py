"""What every schema is."""

from typing import Any

from pydantic import BaseModel, Field


class Schema(BaseModel):
    """The JSON of a noun; fields are read as of a mapping too, which a server's answer is."""

    def __getitem__(self, name: str) -> Any:
        """A field's value."""
        return getattr(self, name)


class PageAnswer(Schema):
    """A page of a list."""

    next: str | None = Field(
        description="`cursor` of the page that follows; null on the last one.", examples=[None]
    )
