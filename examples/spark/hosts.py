"""Counts the hosts that work for a Spark application."""
import os
import socket
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("hosts").getOrCreate()


def hosts(_):
    time.sleep(0.1)  # long enough for each worker to have a share
    return socket.gethostname()


count, want = 0, int(os.environ["SLURM_JOB_NUM_NODES"])
while count < want:  # the workers may still be starting
    count = spark.sparkContext.parallelize(range(8 * want), 8 * want).map(hosts).distinct().count()
print(f"Spark works on {count} hosts")
spark.stop()
