"""Which rows are meant: ``year > 2020 and region in ("north", "east")`` turned into an expression of Arrow.

Names of columns, numbers, words and dates in quotes, comparisons, ``in``, ``and``, ``or``, ``not``, ``is None``:
nothing else is understood, and nothing is ever run.
"""

from __future__ import annotations

import ast
import operator
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COMPARISONS: dict[type, Any] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
# The same seen from the other side: 3 < x is x > 3.
TURNED: dict[type, type] = {ast.Gt: ast.Lt, ast.Lt: ast.Gt, ast.GtE: ast.LtE, ast.LtE: ast.GtE}
EXAMPLE = 'such as "year > 2020" or "region == \'north\' and price < 100"'


def parsed(text: str, schema: pa.Schema) -> pc.Expression:
    """Return an expression of rows of a table, after checking its columns and what they are compared with."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"--where: {text!r} is not understood; expected comparisons, {EXAMPLE}.") from None
    return _Where(text, schema).of(tree)


class _Where:
    def __init__(self, text: str, schema: pa.Schema):
        self.text, self.schema = text, schema

    def of(self, node: ast.AST) -> pc.Expression:
        if isinstance(node, ast.BoolOp):
            together = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return reduce(together, map(self.of, node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.of(node.operand)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            parts = [self._compared(*part) for part in zip(sides, node.ops, sides[1:], strict=False)]
            return reduce(operator.and_, parts)
        if isinstance(node, ast.Name) and pa.types.is_boolean(self._type(node)):
            return pc.field(node.id)
        raise self._odd(node)

    def _compared(self, left: ast.AST, how: ast.AST, right: ast.AST) -> pc.Expression:
        kind = type(how)
        if not isinstance(left, ast.Name) and isinstance(right, ast.Name):
            left, right, kind = right, left, TURNED.get(kind, kind)
        if not isinstance(left, ast.Name):
            raise self._odd(left)
        type_, column = self._type(left), pc.field(left.id)
        if kind in (ast.Is, ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
            return column.is_null() if kind is ast.Is else column.is_valid()
        if kind in (ast.In, ast.NotIn) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            found = column.isin([self._value(one, left.id, type_).as_py() for one in right.elts])
            return found if kind is ast.In else ~found
        if kind not in COMPARISONS:
            raise self._odd(right)
        return COMPARISONS[kind](column, self._value(right, left.id, type_))

    def _type(self, node: ast.Name) -> pa.DataType:
        if node.id not in self.schema.names:
            known = ", ".join(map(repr, self.schema.names[:10]))
            raise ValueError(f"--where: there is no column {node.id!r}; there are {known}.")
        kind = self.schema.field(node.id).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def _value(self, node: ast.AST, name: str, kind: pa.DataType) -> pa.Scalar:
        minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        held = node.operand if isinstance(node, ast.UnaryOp) and minus else node
        if not isinstance(held, ast.Constant):
            raise self._odd(node)
        value: Any = held.value
        if minus:
            if not isinstance(value, (int, float)):
                raise self._odd(node)
            value = -value
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if number and isinstance(value, (int, float)) and not isinstance(value, bool):
            return pa.scalar(value)
        if pa.types.is_boolean(kind) and isinstance(value, (bool, int)):
            return pa.scalar(bool(value))
        if not number and not pa.types.is_boolean(kind) and isinstance(value, str):
            try:
                return pa.scalar(value).cast(kind)
            except pa.ArrowException:
                pass
        raise ValueError(f"--where: column {name!r} holds {kind}, which cannot be compared with {value!r}.")

    def _odd(self, node: ast.AST) -> ValueError:
        piece = ast.get_source_segment(self.text.strip(), node) or self.text
        return ValueError(f"--where: {piece!r} is not understood; expected a column and a value compared, {EXAMPLE}.")
