"""The engine: records, Views (the read gate), the Gateway (the write gate), and the port both go through.

`LocalEngine` keeps one data directory; `kektor.engine.plain` is the same in plain dictionaries. Slots, bitmaps and
frames stay inside this package and those below it.
"""
