"""What a caller asks for, parsed and checked before any structure is touched.

`parse_filter` reads the filter language in both its forms (docs/filters.md); what a filter means is defined
in `kektor.engine.filters`.
"""

from kektor.engine.filters import check_bare
from kektor.query.parser import parse_filter
from kektor.query.texts import TextMatch, find_text

__all__ = ["TextMatch", "check_bare", "find_text", "parse_filter"]
