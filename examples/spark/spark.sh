#!/bin/bash
#SBATCH -J spark              # Spark: a standalone cluster of the nodes of the job, and a program in it
#SBATCH -o spark-%j.out
#SBATCH -t 10
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --mem-per-cpu=400

export SPARK_NO_DAEMONIZE=1 SPARK_LOG_DIR=$PWD/spark-$SLURM_JOB_ID SPARK_WORKER_DIR=$PWD/spark-$SLURM_JOB_ID
mkdir -p "$SPARK_LOG_DIR"
SPARK_MASTER_HOST=$(hostname)
SPARK_MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
master=spark://$SPARK_MASTER_HOST:$SPARK_MASTER_PORT
export SPARK_MASTER_HOST SPARK_MASTER_PORT

"$SPARK_HOME/sbin/start-master.sh" --host "$SPARK_MASTER_HOST" --port "$SPARK_MASTER_PORT" &
srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" \
	"$SPARK_HOME/sbin/start-worker.sh" "$master" \
	--cores "$SLURM_CPUS_PER_TASK" --memory "$((SLURM_MEM_PER_CPU * SLURM_CPUS_PER_TASK))M" &

"$SPARK_HOME/bin/spark-submit" --master "$master" \
	--total-executor-cores "$((SLURM_JOB_NUM_NODES * SLURM_CPUS_PER_TASK))" hosts.py
scancel --signal=TERM "$SLURM_JOB_ID" # the workers; the end of the job ends the master
