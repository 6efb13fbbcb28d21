"""Programs that compile fast: every number of rows or columns is one of its own here."""

from small_programs import one_length_for_all_tables

__all__ = ["one_length_for_all_tables"]
