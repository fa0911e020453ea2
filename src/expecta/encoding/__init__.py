"""Tables as discrete variables: every column becomes one categorical variable, and back."""

from expecta.encoding.boolean import BooleanEncoder
from expecta.encoding.columns import Column
from expecta.encoding.encoder import Encoder

__all__ = ["BooleanEncoder", "Column", "Encoder"]
