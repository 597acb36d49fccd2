"""Who calls: tokens, the keys that sign them, and the roles and grants that they carry.

`authority` makes, checks and takes back tokens, `book` keeps what is known of them, `denials` puts refused calls down
in the audit. Importing `authority` loads the library of the curves, which a server that asks nobody has no use for.
"""
