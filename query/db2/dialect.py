"""The differences of Db2's SQL, for sqlglot's parser.

sqlglot has no Db2 dialect. Taken from Db2's SQL reference as summarised with each rule:

    ... WITH UR, FOR READ ONLY, OPTIMIZE FOR n ROWS   say nothing about the result: dropped
    CURRENT TIMESTAMP, CURRENT DATE                   two words, otherwise read as a column
    CURRENT DATE - 7 DAYS                             labelled durations, otherwise an alias
    a CONCAT b, VALUES 1                              an operator; a query without SELECT
    u2-source                                         a tag's name, where there is such a tag
    INT(x), CHAR(x), DAYS(x), POSSTR(x, y)...         Db2's functions, from the table functions.py
"""

import logging
from collections.abc import Collection
from typing import Any, ClassVar

from sqlglot import exp, generator, parser, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.tokenizer_core import Token, TokenType

from query.db2.calls import Db2Cast
from query.db2.functions import FUNCTIONS, Function
from query.db2.time_limit import go_on

# It writes parts of statements to stderr; their errors say what is wrong with them.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_CAST_TYPES = {
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INTEGER",
    exp.DType.BIGINT: "BIGINT",
    exp.DType.DECIMAL: "DECIMAL",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.FLOAT: "DOUBLE",
    exp.DType.DECFLOAT: "DOUBLE",
    exp.DType.CHAR: "CHAR",
    exp.DType.VARCHAR: "VARCHAR",
    exp.DType.DATE: "DATE",
    exp.DType.TIME: "TIME",
    exp.DType.TIMESTAMP: "TIMESTAMP",
}

DURATIONS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
"""Labels of a duration, to be written with an S at the end or without."""

_STEPS, _STEPS_OF_TOKEN = 10_000, 50
"""Steps of the parser, forth and back, before it gives up, and for each token."""

ISOLATION_LEVELS = ("UR", "CS", "RS", "RR")


class Db2Duration(exp.Expression):
    """``7 DAYS``, as it may be added to a date or taken from it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True}


_OWN_SYNTAX = ("POSITION", "STRING_AGG", "SUBSTRING", "TRIM")
"""Functions whose arguments may stand between words, as in TRIM(BOTH '_' FROM x)."""


def _call(name: str, function: Function) -> Any:
    """The parser's builder of a call; None where it has a syntax of its own and no other."""
    build: Any = function.build or parser.Parser.FUNCTIONS.get(name)
    if build is None:
        return None

    def built(args: list[exp.Expr]) -> exp.Expr:
        if len(args) < function.least or (function.most is not None and len(args) > function.most):
            return exp.Anonymous(this=name, expressions=args)  # refused as an unknown function
        call: exp.Expr = build(args)
        return call

    return built


def _calls() -> dict[str, Any]:
    calls = {name: _call(name, function) for name, function in FUNCTIONS.items()}
    return {name: build for name, build in calls.items() if build is not None}


def _cast(node: exp.Cast) -> exp.Expr:
    """CAST(x AS INTEGER) converts as INTEGER(x) does; types without a function stay as they are."""
    kind = _CAST_TYPES.get(node.to.this)
    if kind is None:
        return node
    precision, scale, *_ = [*(parameter.this for parameter in node.to.expressions), None, None]
    if kind in ("DATE", "TIME", "TIMESTAMP"):
        precision = scale = None
    if kind == "DECIMAL" and precision is None:
        precision = exp.Literal.number(5)
    return Db2Cast(this=node.this, kind=kind, precision=precision, scale=scale)


class Db2(Dialect):
    """Db2 for LUW, as far as Spectrum Discover's users write it."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE
    NULL_ORDERING = "nulls_are_large"
    TABLESAMPLE_SIZE_IS_PERCENT = True

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

        FUNCTIONS: ClassVar[dict[str, Any]] = _calls()

        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse
            for name, parse in parser.Parser.FUNCTION_PARSERS.items()
            if name in ("CAST", *_OWN_SYNTAX)
        }

        def reset(self) -> None:
            """Begin a statement."""
            super().reset()
            self._steps = 0

        def _advance(self, times: int = 1) -> None:
            self._steps += 1
            go_on()
            if self._steps > _STEPS + _STEPS_OF_TOKEN * self._tokens_size:
                raise RecursionError("the parser tries too many ways")
            super()._advance(times)

        def _parse_types(self, check_func: bool = False, *arguments: Any, **options: Any) -> Any:
            # INT(...) in an expression is a function; tried as a type first, every level of a nest
            # is parsed twice, so that 30 levels take hours.
            if check_func and self._next and self._next.token_type is TokenType.L_PAREN:
                return None
            return super()._parse_types(check_func, *arguments, **options)

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
            elif self._match_text_seq("OPTIMIZE", "FOR"):
                dropped = bool(self._match(TokenType.NUMBER)) and bool(
                    self._match_text_seq("ROWS") or self._match_text_seq("ROW")
                )
            else:
                dropped = bool(
                    self._match_text_seq("FOR", "READ", "ONLY")
                    or self._match_text_seq("FOR", "FETCH", "ONLY")
                )
            if not dropped:
                self._retreat(start)
            return dropped

        def _parse_derived_table_values(self, *_: Any, **__: Any) -> Any:
            """``(VALUES 1, 2) AS t(x)`` in FROM, and VALUES within other parentheses: a query."""
            is_derived = self._match_pair(TokenType.L_PAREN, TokenType.VALUES)
            if not (is_derived or self._match(TokenType.VALUES)):
                return None
            query = _of_rows(self._parse_csv(self._parse_values_row))
            if not is_derived:
                return query
            self._match_r_paren()
            alias = self._parse_table_alias()
            if alias is not None and not alias.columns:  # Db2 names them by their numbers
                names = [str(number + 1) for number in range(len(query.selects))]
                alias.set("columns", [exp.to_identifier(name, quoted=True) for name in names])
            return exp.Subquery(this=query, alias=alias)

        def _parse_table_alias(self, *arguments: Any, **options: Any) -> Any:
            if self._next and self._is("OPTIMIZE") and self._next.text.upper() == "FOR":
                return None  # no table's alias
            return super()._parse_table_alias(*arguments, **options)

        def _parse_statement(self) -> Any:
            if self._match(TokenType.VALUES):
                return self._parse_query_modifiers(
                    _of_rows(self._parse_csv(self._parse_values_row))
                )
            return super()._parse_statement()

        def _parse_values_row(self) -> Any:
            row: Any = self._parse_disjunction()
            if row is None:
                self.raise_error("Expected a value")
            return list(row.expressions) if isinstance(row, exp.Tuple) else [row.unnest()]

        def _parse_term(self, parse_mod: bool = True) -> Any:
            this = super()._parse_term(parse_mod)
            while this is not None and self._is("CONCAT") and not self._ends(self._next):
                self._advance()
                this = exp.DPipe(this=this, expression=super()._parse_term(parse_mod), safe=True)
            return this

        def _parse_unary(self) -> Any:
            sign = self._prev.token_type if self._prev else None
            this = super()._parse_unary()
            if isinstance(this, exp.Neg) and isinstance(this.this, Db2Duration):
                amount = exp.Neg(this=this.this.this)
                return Db2Duration(this=amount, unit=this.this.args["unit"])
            if sign not in (TokenType.PLUS, TokenType.DASH) or self._curr is None:
                return this
            unit = self._curr.text.upper().removesuffix("S")
            if this is None or unit not in DURATIONS or self._curr.token_type is TokenType.STRING:
                return this
            self._advance()
            return Db2Duration(this=this, unit=unit)

        def _is(self, word: str) -> bool:
            token = self._curr
            return (
                bool(token)
                and token.token_type is not TokenType.STRING
                and (token.text.upper() == word)
            )

        @staticmethod
        def _ends(token: Any) -> bool:
            """Return whether the token before was a name, and no operator."""
            return token is None or token.token_type in (
                TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.SEMICOLON,
            )  # fmt: skip

    class Generator(generator.Generator):
        """Db2 text is never written, only read."""


def _of_rows(rows: list[list[exp.Expr]]) -> exp.Query:
    """``VALUES (1, 2), (3, 4)`` as SELECT and UNION ALL."""
    queries: list[exp.Query] = [exp.Select(expressions=row) for row in rows]
    while len(queries) > 1:  # a tree, because a chain would be as deep as it is long
        pairs: list[exp.Query] = [
            exp.Union(this=one, expression=other, distinct=False)
            for one, other in zip(queries[::2], queries[1::2], strict=False)
        ]
        queries = pairs + queries[len(pairs) * 2 :]
    return queries[0]


def join_names(tokens_: list[Any], hyphenated: Collection[str], columns: Collection[str]) -> None:
    """Make one name of ``u2-source``, where that is the name of something, in place.

    Written without blanks, the longest such name counts; but a difference of two columns stays one,
    and so does everything with blanks around the sign. In quotes a name is a name anyway.

    Args:
        hyphenated: Names with a hyphen, in lower case.
        columns: Names of columns, in lower case.
    """
    longest = max((name.count("-") for name in hyphenated), default=0)
    position = 0
    while position < len(tokens_):
        for hyphens in range(longest, 0, -1):
            parts = tokens_[position : position + 2 * hyphens + 1]
            name = "".join(token.text for token in parts)
            if not _touch(parts, 2 * hyphens + 1) or name.lower() not in hyphenated:
                continue
            if all(token.text.lower() in columns for token in parts[::2]):
                continue
            start, end = parts[0], parts[-1]
            tokens_[position] = Token(
                TokenType.IDENTIFIER, name, start.line, start.col, start.start, end.end
            )
            del tokens_[position + 1 : position + len(parts)]
            break
        position += 1


def _touch(parts: list[Any], count: int) -> bool:
    """Return whether they are names and hyphens by turns, without anything in between."""
    if len(parts) != count:
        return False
    for number, token in enumerate(parts):
        if number % 2:
            if token.token_type is not TokenType.DASH:
                return False
        elif token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or not (
            token.text.replace("_", "").isalnum()
        ):
            return False
        if number and parts[number - 1].end + 1 != token.start:
            return False
    return True
