"""Every mutation, one class each: it prepares drafts, and stages their effects once the policies have passed them."""
