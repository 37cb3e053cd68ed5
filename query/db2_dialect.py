"""What Db2 writes differently, for sqlglot's parser: only the differences.

sqlglot has no Db2 dialect. Taken from Db2's SQL reference as summarised with each rule:

    ... WITH UR, FOR READ ONLY, FOR FETCH ONLY        say nothing about the result: dropped
    CURRENT TIMESTAMP, CURRENT DATE                   two words, otherwise read as a column
    INT(x), BIGINT(x), DOUBLE(x), DECIMAL(x, p, s)... casts, decided in db2_semantics
    CHAR(x)                                           a cast, where MySQL's CHAR(n) is CHR(n)
"""

from typing import Any, ClassVar

from sqlglot import exp, generator, parser, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.tokenizer_core import TokenType

CAST_FUNCTIONS: dict[str, str] = {
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "SMALLINT": "SMALLINT",
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "FLOAT": "DOUBLE",
    "REAL": "REAL",
    "DECIMAL": "DECIMAL",
    "DEC": "DECIMAL",
    "CHAR": "VARCHAR",
    "VARCHAR": "VARCHAR",
}
"""Functions that convert, and the type they give."""

_CAST_TYPES = {
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INTEGER",
    exp.DType.BIGINT: "BIGINT",
    exp.DType.DECIMAL: "DECIMAL",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.FLOAT: "DOUBLE",
    exp.DType.DECFLOAT: "DOUBLE",
    exp.DType.CHAR: "VARCHAR",
    exp.DType.VARCHAR: "VARCHAR",
}

ISOLATION_LEVELS = ("UR", "CS", "RS", "RR")


class Db2Cast(exp.Expression, exp.Func):
    """INT(x) and its family: converts as Db2 does, not as the engine's CAST."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "precision": False,
        "scale": False,
    }


_MOST_ARGUMENTS = {"DECIMAL": 3, "VARCHAR": 2}


def _cast_builder(name: str, kind: str) -> Any:
    def build(args: list[exp.Expr]) -> exp.Expr:
        if not 1 <= len(args) <= _MOST_ARGUMENTS.get(kind, 1):
            return exp.Anonymous(this=name, expressions=args)  # refused as an unknown function
        this, precision, scale, *_ = [*args, None, None]
        return Db2Cast(this=this, kind=kind, precision=precision, scale=scale)

    return build


def _value(args: list[exp.Expr]) -> exp.Expr:
    if len(args) < 2:
        return exp.Anonymous(this="VALUE", expressions=args)
    return exp.Coalesce(this=args[0], expressions=args[1:])


def _posstr(args: list[exp.Expr]) -> exp.Expr:
    if len(args) != 2:
        return exp.Anonymous(this="POSSTR", expressions=args)
    return exp.StrPosition(this=args[0], substr=args[1])


def _cast(node: exp.Cast) -> exp.Expr:
    """CAST(x AS INTEGER) converts as INTEGER(x) does; types without a function stay as they are."""
    kind = _CAST_TYPES.get(node.to.this)
    if kind is None:
        return node
    precision, scale, *_ = [*(part.this for part in node.to.expressions), None, None]
    if kind == "DECIMAL" and precision is None:
        precision = exp.Literal.number(5)
    return Db2Cast(this=node.this, kind=kind, precision=precision, scale=scale)


class Db2(Dialect):
    """Db2 for LUW, as far as Spectrum Discover's users write it."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE
    NULL_ORDERING = "nulls_are_large"

    class Tokenizer(tokens.Tokenizer):
        """Two-word keywords, and ^= for <>."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **tokens.Tokenizer.KEYWORDS,
            "CURRENT TIMESTAMP": TokenType.CURRENT_TIMESTAMP,
            "CURRENT DATE": TokenType.CURRENT_DATE,
            "CURRENT TIME": TokenType.CURRENT_TIME,
            "^=": TokenType.NEQ,
            "!=": TokenType.NEQ,
        }

    class Parser(parser.Parser):
        """Conversion functions and the clauses that say nothing about the result."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **parser.Parser.FUNCTIONS,
            **{name: _cast_builder(name, kind) for name, kind in CAST_FUNCTIONS.items()},
            "VALUE": _value,
            "POSSTR": _posstr,
        }

        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse
            for name, parse in parser.Parser.FUNCTION_PARSERS.items()
            if name not in CAST_FUNCTIONS
        }

        def _parse_query_modifiers(self, this: Any) -> Any:
            this = super()._parse_query_modifiers(this)
            while self._drop_clause():
                pass
            return this

        def _parse_cast(self, *arguments: Any, **options: Any) -> Any:
            parsed = super()._parse_cast(*arguments, **options)
            return _cast(parsed) if type(parsed) is exp.Cast else parsed

        def _warn_unsupported(self) -> None:
            """Say nothing: such a statement is refused, and the log is no place for its text."""

        def _drop_clause(self) -> bool:
            start = self._index
            if self._match(TokenType.WITH):
                dropped = bool(self._curr) and self._curr.text.upper() in ISOLATION_LEVELS
                if dropped:
                    self._advance()
            else:
                dropped = bool(
                    self._match_text_seq("FOR", "READ", "ONLY")
                    or self._match_text_seq("FOR", "FETCH", "ONLY")
                )
            if not dropped:
                self._retreat(start)
            return dropped

    class Generator(generator.Generator):
        """Db2 text is never written, only read."""
