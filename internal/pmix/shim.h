// The part of PMIx's server interface that Go cannot call or be called by
// directly.
#ifndef BERTH_PMIX_SHIM_H
#define BERTH_PMIX_SHIM_H

#include <pmix.h>
#include <pmix_server.h>

// berth_open starts the library. Its files go to dir.
int berth_open(const char *nspace, uint32_t node, const char *host, const char *dir);

// berth_register tells the library of the step. nodes are the names of its
// nodes, with commas between them; ranks those of each node, with semicolons
// between nodes; node and place tell of each of size tasks its node and its
// number there; local are those here, and peers the same as a list.
int berth_register(const char *nspace, const char *nodes, const char *ranks, const char *peers,
	uint32_t size, const uint32_t *node, const uint16_t *place, uint32_t nlocal, const uint32_t *local);

// berth_environ is a task's environment, which the caller frees with
// berth_free_environ; NULL: status says why.
char **berth_environ(const char *nspace, uint32_t rank, int *status);
void berth_free_environ(char **env);

// berth_answer gives the library what it asked for: a fence's data, or a
// task's. It keeps a copy.
void berth_answer(void *fn, void *cbdata, int status, const void *data, size_t size);

// berth_ask asks the library for what a local task has put; berthPut gets it.
int berth_ask(const char *nspace, uint32_t rank, uintptr_t id);

#endif
