//go:build pmix

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "_cgo_export.h"

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
	char *data, size_t ndata, pmix_modex_cbfunc_t fn, void *cbdata) {
	(void)info;
	(void)ninfo;
	return berthFence((pmix_proc_t *)procs, nprocs, data, ndata, (void *)fn, cbdata);
}

static pmix_status_t on_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
	pmix_modex_cbfunc_t fn, void *cbdata) {
	char *key = NULL;

	for (size_t i = 0; i < ninfo; i++)
		if (PMIX_CHECK_KEY(&info[i], PMIX_REQUIRED_KEY) && info[i].value.type == PMIX_STRING)
			key = info[i].value.data.string;
	return berthModex((pmix_proc_t *)proc, key, (void *)fn, cbdata);
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
	pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t fn, void *cbdata) {
	(void)object;
	(void)procs;
	(void)nprocs;
	berthAbort(proc->rank, status, (char *)msg);
	if (fn != NULL)
		fn(PMIX_SUCCESS, cbdata);
	return PMIX_SUCCESS;
}

static pmix_server_module_t module = {
	.abort = on_abort,
	.fence_nb = on_fence,
	.direct_modex = on_modex,
};

int berth_open(const char *nspace, uint32_t node, const char *host, const char *dir) {
	pmix_info_t *info;
	uint32_t uid = geteuid(), gid = getegid();
	pmix_rank_t rank = node;
	char name[PMIX_MAX_NSLEN + 1];
	int rc;

	// The servers of a step are processes of a namespace of their own.
	strncpy(name, nspace, sizeof name - 8);
	name[sizeof name - 8] = 0;
	strcat(name, ".server");
	PMIX_INFO_CREATE(info, 6);
	PMIX_INFO_LOAD(&info[0], PMIX_USERID, &uid, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[1], PMIX_GRPID, &gid, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[2], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
	PMIX_INFO_LOAD(&info[3], PMIX_SERVER_NSPACE, name, PMIX_STRING);
	PMIX_INFO_LOAD(&info[4], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(&info[5], PMIX_HOSTNAME, host, PMIX_STRING);
	rc = PMIx_server_init(&module, info, 6);
	PMIX_INFO_FREE(info, 6);
	return rc;
}

// describe sets info to what the library must know about one task.
static void describe(pmix_info_t *info, uint32_t rank, uint32_t node, uint16_t local_rank, const char *host) {
	enum { N = 9 };
	pmix_data_array_t *array;
	pmix_info_t *i;
	pmix_rank_t r = rank;
	uint32_t zero = 0;

	PMIX_DATA_ARRAY_CREATE(array, N, PMIX_INFO);
	i = array->array;
	PMIX_INFO_LOAD(&i[0], PMIX_RANK, &r, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(&i[1], PMIX_APPNUM, &zero, PMIX_UINT32);
	PMIX_INFO_LOAD(&i[2], PMIX_GLOBAL_RANK, &r, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(&i[3], PMIX_APP_RANK, &r, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(&i[4], PMIX_LOCAL_RANK, &local_rank, PMIX_UINT16);
	PMIX_INFO_LOAD(&i[5], PMIX_NODE_RANK, &local_rank, PMIX_UINT16);
	PMIX_INFO_LOAD(&i[6], PMIX_NODEID, &node, PMIX_UINT32);
	PMIX_INFO_LOAD(&i[7], PMIX_HOSTNAME, host, PMIX_STRING);
	r = 0;
	PMIX_INFO_LOAD(&i[8], PMIX_APPLDR, &r, PMIX_PROC_RANK);
	PMIX_LOAD_KEY(info->key, PMIX_PROC_DATA);
	info->value.type = PMIX_DATA_ARRAY;
	info->value.data.darray = array;
}

int berth_register(const char *nspace, const char *nodes, const char *ranks, const char *peers,
	uint32_t size, const uint32_t *node, const uint16_t *local_ranks, uint32_t nlocal, const uint32_t *local) {
	enum { N = 13 };
	char *node_map = NULL, *proc_map = NULL, *names, **hosts;
	pmix_info_t *info;
	pmix_proc_t proc;
	pmix_rank_t leader = local[0];
	uint32_t one = 1, count = 1, n = 0;
	bool spawned = false;
	int rc;

	if ((rc = PMIx_generate_regex(nodes, &node_map)) != PMIX_SUCCESS)
		return rc;
	if ((rc = PMIx_generate_ppn(ranks, &proc_map)) != PMIX_SUCCESS) {
		free(node_map);
		return rc;
	}
	for (const char *p = nodes; *p; p++)
		count += *p == ',';
	names = strdup(nodes);
	hosts = calloc(count, sizeof *hosts);
	for (char *p = strtok(names, ","); p != NULL && n < count; p = strtok(NULL, ","))
		hosts[n++] = p;
	PMIX_INFO_CREATE(info, N + size);
	PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, node_map, PMIX_REGEX);
	PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, proc_map, PMIX_REGEX);
	PMIX_INFO_LOAD(&info[2], PMIX_UNIV_SIZE, &size, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[3], PMIX_JOB_SIZE, &size, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[4], PMIX_MAX_PROCS, &size, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[5], PMIX_LOCAL_SIZE, &nlocal, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[6], PMIX_NODE_SIZE, &nlocal, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[7], PMIX_LOCAL_PEERS, peers, PMIX_STRING);
	PMIX_INFO_LOAD(&info[8], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
	PMIX_INFO_LOAD(&info[9], PMIX_JOBID, nspace, PMIX_STRING);
	PMIX_INFO_LOAD(&info[10], PMIX_SPAWNED, &spawned, PMIX_BOOL);
	PMIX_INFO_LOAD(&info[11], PMIX_NUM_NODES, &count, PMIX_UINT32);
	PMIX_INFO_LOAD(&info[12], PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
	for (uint32_t r = 0; r < size; r++)
		describe(&info[N + r], r, node[r], local_ranks[r], hosts[node[r]]);
	rc = PMIx_server_register_nspace(nspace, nlocal, info, N + size, NULL, NULL);
	PMIX_INFO_FREE(info, N + size);
	free(hosts);
	free(names);
	free(node_map);
	free(proc_map);
	for (uint32_t i = 0; i < nlocal && (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED); i++) {
		PMIX_PROC_LOAD(&proc, nspace, local[i]);
		rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
	}
	return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}

char **berth_environ(const char *nspace, uint32_t rank, int *status) {
	pmix_proc_t proc;
	char **env = NULL;

	PMIX_PROC_LOAD(&proc, nspace, rank);
	*status = PMIx_server_setup_fork(&proc, &env);
	return env;
}

void berth_free_environ(char **env) {
	for (char **e = env; e != NULL && *e != NULL; e++)
		free(*e);
	free(env);
}

void berth_answer(void *fn, void *cbdata, int status, const void *data, size_t size) {
	char *copy = NULL;

	if (size > 0 && (copy = malloc(size)) != NULL)
		memcpy(copy, data, size);
	((pmix_modex_cbfunc_t)fn)(status, copy, copy == NULL ? 0 : size, cbdata, free, copy);
}

static void on_local_data(pmix_status_t status, char *data, size_t size, void *cbdata) {
	berthReceiveLocal(status, data, size, (uintptr_t)cbdata);
}

int berth_request_local(const char *nspace, uint32_t rank, uintptr_t id) {
	pmix_proc_t proc;

	PMIX_PROC_LOAD(&proc, nspace, rank);
	return PMIx_server_dmodex_request(&proc, on_local_data, (void *)id);
}
