#!/usr/bin/env python3
"""Stands in for Spark's master, in the foreground: a hub that the workers join."""
import sys
import time

import meet

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
meet.serve((options["--host"], int(options["--port"])))
while True:
    time.sleep(60)
