"""What forgetting means: what is chosen, what that reaches, what proves it.

`choosing` finds what a caller means, `matching` reads a question as what is to be forgotten, `closure` follows
versions, copies and what was derived, `cutting` takes sentences out of texts that stay, `previews` and `receipts` are
what the caller holds.
"""
