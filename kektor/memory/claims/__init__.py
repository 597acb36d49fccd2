"""What a plain sentence claims, read by rules and tables: subject, predicate, object, polarity, dates, event or state.

`reading` takes a sentence apart, `comparing` says what two statements are to each other, `clauses` splits a text that
makes several. The tables lie in `data/`, one a language. Nothing here needs a model, and what the rules do not
understand is no statement rather than a guess.
"""

from kektor.memory.claims.clauses import remainder_of
from kektor.memory.claims.comparing import SingleValued, compare
from kektor.memory.claims.reading import declared, statement_of
from kektor.memory.claims.statement import Statement

__all__ = ["SingleValued", "Statement", "compare", "declared", "remainder_of", "statement_of"]
