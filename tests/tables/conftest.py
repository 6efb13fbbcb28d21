"""Programs that compile fast."""

from small_programs import one_length_for_all_tables

__all__ = ["one_length_for_all_tables"]
