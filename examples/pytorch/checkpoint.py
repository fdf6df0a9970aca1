"""Counts to ten, and continues after a requeue where it stopped: the shape of a training with checkpoints."""
import os
import signal
import sys
import time

STATE, LAST = "checkpoint.txt", int(os.environ.get("LAST", "10"))

step = 0
if os.path.exists(STATE):
    with open(STATE) as f:
        step = int(f.read())


def save(*_):
    with open(STATE, "w") as f:
        f.write(str(step))
    sys.exit(0)


signal.signal(signal.SIGUSR1, save)
print(f"run {os.environ.get('SLURM_RESTART_COUNT', '0')} begins at step {step}", flush=True)
while step < LAST or not os.path.exists(STATE):  # the first run lasts until it is interrupted
    step = min(step + 1, LAST)
    time.sleep(0.1)
print(f"step {step} is the last one", flush=True)
