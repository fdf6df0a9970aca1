// The part of PMIx's server interface that Go cannot use directly: macros,
// structures with unions, and callbacks.
#ifndef BERTH_PMIX_SHIM_H
#define BERTH_PMIX_SHIM_H

#include <pmix.h>
#include <pmix_server.h>

// berth_open starts the library, which creates its files in dir.
int berth_open(const char *nspace, uint32_t node, const char *host, const char *dir);

// berth_register registers the step. nodes are the names of its nodes, separated by
// commas; ranks are those of each node, with semicolons between nodes; node and
// local_ranks have the node and the rank on its node of each of size tasks; local are
// the nlocal tasks of this node, and peers the same as text.
int berth_register(const char *nspace, const char *nodes, const char *ranks, const char *peers,
	uint32_t size, const uint32_t *node, const uint16_t *local_ranks, uint32_t nlocal, const uint32_t *local);

// berth_environ returns a task's environment, which the caller frees with
// berth_free_environ. After an error it returns NULL and sets status.
char **berth_environ(const char *nspace, uint32_t rank, int *status);
void berth_free_environ(char **env);

// berth_answer passes the library the data of a fence or of a task that it requested
// with the callback fn. It copies the data.
void berth_answer(void *fn, void *cbdata, int status, const void *data, size_t size);

// berth_request_local requests the data that a local task has put; berthReceiveLocal
// receives them.
int berth_request_local(const char *nspace, uint32_t rank, uintptr_t id);

#endif
