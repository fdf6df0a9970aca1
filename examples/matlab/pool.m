% Sums squares with a pool that is as large as the Slurm job.
cluster = parcluster('local');
cluster.JobStorageLocation = getenv('MATLAB_PREFDIR');
cluster.NumWorkers = str2double(getenv('SLURM_CPUS_PER_TASK'));
pool = parpool(cluster, cluster.NumWorkers);
total = 0;
parfor i = 1:100
    total = total + i^2;
end
fprintf('%d workers, sum %d\n', pool.NumWorkers, total);
delete(pool);
