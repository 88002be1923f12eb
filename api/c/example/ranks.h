#ifndef COMMTUNE_EXAMPLE_RANKS_H
#define COMMTUNE_EXAMPLE_RANKS_H
/* A job of processes of one machine that tell each other things through memory which they share. A program
 * that mpirun, srun or torchrun started has a better way already. */

#include <stddef.h>

typedef struct job job;

/* Starts `ranks` processes, each of which calls body with its rank, and waits for them.
 * returns  0 where every body returned 0 */
int run_ranks(int ranks, int (*body)(job* of, int rank, void* context), void* context);

/* A commtune_all_gather whose context is a rank's job. */
int all_gather(void* of, const void* own, size_t bytes, void* all);

#endif
