"""Tables as discrete variables: every column becomes one categorical variable, and back."""

from expecta.tables.boolean_encoder import BooleanEncoder
from expecta.tables.column import Column
from expecta.tables.encoder import Encoder

__all__ = ["BooleanEncoder", "Column", "Encoder"]
