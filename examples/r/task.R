# One task of an array: its index is the argument.
index <- as.integer(commandArgs(trailingOnly = TRUE)[1])
cat(sprintf("task %d of %s\n", index, Sys.getenv("SLURM_ARRAY_TASK_COUNT")))
