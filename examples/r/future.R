# Futures that are jobs of Slurm (future.batchtools). Run it on the login node: Rscript future.R
library(future)
library(future.apply)
plan(future.batchtools::batchtools_slurm, template = "slurm.tmpl", resources = list(minutes = 10, memory = 500))
squares <- future_sapply(1:3, function(i) i^2, future.chunk.size = 1)
print(squares)
