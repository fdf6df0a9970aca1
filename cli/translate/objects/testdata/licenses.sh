#!/bin/bash
#SBATCH --licenses=fluent:4,matlab --reservation=friday --wckey=w1
#SBATCH --comment="two words" --extra=more
srun ./step
