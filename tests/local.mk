# Unit tests in Check link libcore.la, so that they see the internals.
