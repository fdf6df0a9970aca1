# JupyterHub whose notebooks are jobs (batchspawner). Start the hub where pods' addresses are reachable:
# on a login node of the cluster, or on the machine of a local cluster.
import batchspawner  # adds the part of the hub's API that the jobs call

c.JupyterHub.spawner_class = "batchspawner.SlurmSpawner"
c.JupyterHub.hub_ip = ""  # the jobs connect to the hub
c.SlurmSpawner.req_partition = "main"
c.SlurmSpawner.req_runtime = "4:00:00"
c.SlurmSpawner.req_memory = "2G"

# The hub connects to the address of the job's pod, because only the job itself can resolve the name of its node.
# The job puts that address into its comment.
c.SlurmSpawner.req_prologue = "scontrol update JobId=$SLURM_JOB_ID Comment=$(hostname -i)"
c.SlurmSpawner.batch_query_cmd = "squeue -h -j {job_id} -o '%T %k'"
c.SlurmSpawner.state_pending_re = r"^(?:PENDING|CONFIGURING)|^RUNNING \(null\)"
c.SlurmSpawner.state_running_re = r"^(?:RUNNING|COMPLETING) [\d.]+$"
