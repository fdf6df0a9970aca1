function task(index)
% One task of an array.
fprintf('task %d of %s\n', index, getenv('SLURM_ARRAY_TASK_COUNT'));
end
