"""Recall: question → candidates → fused → resolved → judged → packed under a hard token budget.

One pipeline serves every door. Each stage is a file; `pipeline.recall` is the sentence they form.
"""

from kektor.memory.recall.pipeline import recall

__all__ = ["recall"]
