# Workers by SlurmClusterManager: srun starts one for each task of the job.
using Distributed, SlurmClusterManager

addprocs(SlurmManager())
@everywhere using Sockets
for id in workers()
    println("worker $id on ", fetch(@spawnat id gethostname()))
end
println(nworkers(), " workers on ", length(unique(pmap(_ -> gethostname(), 1:4nworkers()))), " hosts")
rmprocs(workers())
