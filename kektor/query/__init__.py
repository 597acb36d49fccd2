"""What a caller asks for, parsed and checked before any structure is touched.

`parse_filter` reads the filter language in both its forms (docs/filters.md); what a filter means is defined
in `kektor.engine.filters`.
"""

from kektor.engine.filters import check_bare
from kektor.query.parser import parse_filter

__all__ = ["check_bare", "parse_filter"]
