# Workers by ClusterManagers: srun starts them, and each writes its address to a file of its own.
using Distributed, ClusterManagers

addprocs(SlurmManager(parse(Int, ENV["SLURM_NTASKS"])), job_file_loc = "workers")
for id in workers()
    println("worker $id on ", fetch(@spawnat id gethostname()))
end
println(nworkers(), " workers on ", length(unique(pmap(_ -> gethostname(), 1:4nworkers()))), " hosts")
rmprocs(workers())
