"""What a memory is and what may happen to it: saving, correcting, forgetting, recalling.

`commands` are the mutations, `policies` what the write gate checks, `recall` the one way to answer a question,
`requests` and `objects` what callers send and get.
"""
