"""What `kektor try` shows: a small made-up team's memory, and how to use it from everywhere."""
