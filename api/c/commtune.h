#ifndef COMMTUNE_H
#define COMMTUNE_H
/* commtune inside a training program: gradients travel by a plan, tensor by tensor, while the backward pass
 * still makes others. Plain C; see api/c/README.md and the programs in api/c/example.
 *
 *   commtune_session* session = NULL;
 *   commtune_join(&options, &session);                       every rank of the job
 *   commtune_layout(session, COMMTUNE_FLOAT32, n, tensors, NULL);
 *   commtune_adopt(session, "plan.json");
 *   for each step:
 *     commtune_begin(session);
 *     ... backward pass: write gradient i, then commtune_ready(session, i) ...
 *     commtune_wait(session, i) before gradient i, now the mean over all ranks, is used
 *   commtune_leave(session);
 *   commtune_destroy(session);
 *
 * Every function that can fail returns a code; commtune_last_message() has the text. No exception leaves the
 * library. A code other than COMMTUNE_OK, COMMTUNE_PLAN_REFUSED or COMMTUNE_BAD_CALL ends the session: later
 * calls return it again, the other ranks are told why by commtune_abort() or commtune_destroy().
 *
 * Threads: commtune_ready(), commtune_ready_after(), commtune_is_back(), commtune_are_back(), commtune_wait()
 * and commtune_wait_all() may be called from any thread, several at once, between commtune_begin() and the
 * return of the last wait. Everything else is called by one thread at a time, and not while one of those is
 * under way. Several sessions may live in one process. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COMMTUNE_API __attribute__((visibility("default")))
#else
#define COMMTUNE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers do not change; new codes may come. */
typedef enum commtune_code {
  COMMTUNE_OK = 0,
  COMMTUNE_DEFECT = 1,      /* a defect of the library */
  COMMTUNE_BAD_INPUT = 2,   /* a plan, layout or option is malformed */
  COMMTUNE_NOT_FOUND = 3,   /* a named file or service does not exist */
  COMMTUNE_POOR_FIT = 4,    /* measurements do not support a model */
  COMMTUNE_CONFLICT = 5,    /* ranks disagree */
  COMMTUNE_TIMEOUT = 6,     /* a rank did not answer in time */
  COMMTUNE_PEER_LOST = 7,   /* a rank, host or link went away; the message names it */
  COMMTUNE_STORAGE = 8,     /* a file cannot be read */
  COMMTUNE_UNAVAILABLE = 9, /* a device or library is missing here */
  COMMTUNE_INTERRUPTED = 10,
  COMMTUNE_PLAN_REFUSED = 11, /* on every rank; the plan before is still in force */
  COMMTUNE_BAD_CALL = 12      /* this call alone was wrong, such as a tensor that there is not */
} commtune_code;

/* "peer_lost"; "unknown" for a number that is no code. */
COMMTUNE_API const char* commtune_code_name(commtune_code code);

/* What the last call of this thread that failed had to say; empty before. Valid until this thread's next call
 * into the library. */
COMMTUNE_API const char* commtune_last_message(void);

/* "0.1.0" */
COMMTUNE_API const char* commtune_version(void);

typedef struct commtune_session commtune_session;

/* Collective over all ranks of the job, by a way that they have already (a store, MPI, a scheduler): `own` is
 * `bytes` long, as every other rank's is, and `all` takes all ranks' in rank order. Called while
 * commtune_join() runs, on its thread, and never afterwards. Returns 0, or anything else where it failed. */
typedef int (*commtune_all_gather)(void* context, const void* own, size_t bytes, void* all);

typedef enum commtune_result { COMMTUNE_MEAN = 0, COMMTUNE_SUM = 1 } commtune_result;

/* Set all of it to zero, then what is wanted: zero means the default. */
typedef struct commtune_join_options {
  int rank, ranks; /* 0..ranks-1 */
  int workers;     /* ranks 0..workers-1 train, those behind them are dedicated servers; 0: all ranks train */
  commtune_all_gather all_gather; /* NULL: the ranks are a job of Open MPI's, which says rank and ranks */
  void* context;                  /* handed to all_gather */
  const char* transport;          /* "tcp" (NULL), "mpi" (only without all_gather), "verbs" */
  const char* subnet;             /* addresses to use, such as "10.0.0.0/24"; NULL: any that ranks share */
  double pace_bytes_per_second;   /* that a rank sends to other hosts at most; 0: what the plan says */
  double timeout_seconds;         /* longest wait for any one message, or for ranks to agree; 0: 60 */
  uint64_t chunk_bytes;           /* longest transfer; 0: as the transport likes */
  commtune_result result;         /* of every gradient, over the workers */
  int announced_plans;            /* not 0: rank 0 may call commtune_announce(); on all ranks alike */
  int own_barrier; /* not 0: the caller has a barrier of its own, so a gradient is back when it is, also
                      under a plan that would have all waited for */
} commtune_join_options;

/* Collective: connects the ranks. Returns when all have called it. */
COMMTUNE_API commtune_code commtune_join(const commtune_join_options* options, commtune_session** session);

/* Who this rank is: in a job of Open MPI's, that says so. -1 where session is NULL. */
COMMTUNE_API int commtune_rank(const commtune_session* session);
COMMTUNE_API int commtune_ranks(const commtune_session* session);

typedef enum commtune_type {
  COMMTUNE_FLOAT32 = 0,
  COMMTUNE_FLOAT16 = 1,
  COMMTUNE_BFLOAT16 = 2
} commtune_type;

typedef struct commtune_tensor {
  const char* name; /* the framework's own, as profiles have it */
  uint64_t bytes;   /* a positive multiple of the element's size */
} commtune_tensor;

/* Collective, once: what travels in every iteration. Tensors are numbered 0..count-1 in the order in which
 * the forward pass uses them; ranks must have the same.
 *
 * memory  where this rank's gradients lie, one address a tensor, which stay allocated until
 *         commtune_destroy(); neighbours that are fused travel without a copy where the last tensor lies
 *         first, without gaps. NULL: the library allocates them so; see commtune_gradient() */
COMMTUNE_API commtune_code commtune_layout(commtune_session* session, commtune_type type, size_t count,
                                           const commtune_tensor* tensors, void* const* memory);

/* The same, with gradients in the memory of an NVIDIA GPU.
 *
 * gpu      of this process, as CUDA counts them (0, 1, ... of CUDA_VISIBLE_DEVICES); it may be another one on
 *          every rank. It is the current one of this thread afterwards. Dedicated servers need none
 * memory   addresses on that GPU, which CUDA's allocators made; NULL: the library allocates there
 * returns  COMMTUNE_UNAVAILABLE where this process can use no GPU, and says why */
COMMTUNE_API commtune_code commtune_layout_on_gpu(commtune_session* session, commtune_type type, size_t count,
                                                  const commtune_tensor* tensors, int gpu,
                                                  void* const* memory);

/* Where a gradient lies; NULL on a rank that does not train, without a layout, or for a tensor that there is
 * not. Memory that the library allocated goes with commtune_destroy(). */
COMMTUNE_API void* commtune_gradient(const commtune_session* session, size_t tensor);

/* 16 hexadecimal digits of what travels, as plans name it; empty without a layout. */
COMMTUNE_API const char* commtune_layout_digest(const commtune_session* session);

typedef struct commtune_bucket_options {
  uint64_t first_bytes, bytes; /* what the first bucket and the others hold at least; 0: 1 MiB and 25 MiB */
  int servers;                 /* colocated parameter servers; 0: all-reduce by a ring */
  int per_layer;               /* not 0: each tensor can be waited for alone; 0: the plan waits for all */
} commtune_bucket_options;

/* A plan that needs no measurement: tensors in buckets, in the order in which the backward pass makes them.
 *
 * options  NULL: all defaults, which is what PyTorch's DistributedDataParallel does
 * json     the plan's text, to be given to commtune_free() */
COMMTUNE_API commtune_code commtune_bucket_plan(const commtune_session* session,
                                                const commtune_bucket_options* options, char** json);
COMMTUNE_API void commtune_free(char* text);

/* Collective, between two iterations: this plan is in force from the next one on. No message is under way
 * then, no iteration is lost or run twice.
 *
 * plan     a file's path, JSON text (begins with '{'), or "buckets" for commtune_bucket_plan(). What a
 *          service answers for /v1/plans/{id} is taken for the plan in it. On rank 0 what all adopt;
 *          elsewhere the same, which is compared, or NULL: whatever rank 0 says
 * returns  COMMTUNE_PLAN_REFUSED where it does not suit the layout, the ranks or the transport;
 *          COMMTUNE_BAD_CALL where this rank cannot read it: no other rank knows of that call */
COMMTUNE_API commtune_code commtune_adopt(commtune_session* session, const char* plan);

/* On rank 0 alone, between two iterations: all workers adopt the plan in the same commtune_begin(), a few
 * iterations from now. They call nothing for it, and those in between go on under the plan that is in force.
 *
 * plan     as of commtune_adopt()
 * first    the iteration that is the first one under it, counted from 1
 * returns  COMMTUNE_PLAN_REFUSED where this rank refuses it: nothing is announced then; COMMTUNE_BAD_CALL
 * without a plan in force, before the one announced last is due, or in a session without announced_plans */
COMMTUNE_API commtune_code commtune_announce(commtune_session* session, const char* plan, uint64_t* first);

/* Why the plan that was announced last, and is due, was not adopted, on any rank; empty: it was. Valid until
 * the next commtune_begin(). */
COMMTUNE_API const char* commtune_refusal(commtune_session* session);

/* Digest of the plan in force, 16 hexadecimal digits; empty where none is. */
COMMTUNE_API const char* commtune_plan_digest(const commtune_session* session);

/* A training step begins: all gradients of the one before have been waited for. */
COMMTUNE_API commtune_code commtune_begin(commtune_session* session);

/* Gradient `tensor` exists. Once an iteration each; from here until it is back its memory is the library's.
 */
COMMTUNE_API commtune_code commtune_ready(commtune_session* session, size_t tensor);

/* Gradient `tensor` exists, on a GPU, as soon as all that this stream was given so far has ended; the call
 * does not wait for it. The stream (cudaStream_t; NULL: the default one) belongs to the layout's GPU. A
 * result is complete when commtune_wait() returns, for all streams. */
COMMTUNE_API commtune_code commtune_ready_after(commtune_session* session, size_t tensor, void* stream);

/* back  1 if the tensor's memory has the result; 0 if not, also after a failure, which commtune_wait() tells
 */
COMMTUNE_API commtune_code commtune_is_back(commtune_session* session, size_t tensor, int* back);
/* The same of all tensors at once.
 *
 * tensors  of the layout
 * back     as many bytes */
COMMTUNE_API commtune_code commtune_are_back(commtune_session* session, size_t tensors, unsigned char* back);

/* Returns when the tensor's memory has the result over all workers; under a plan whose barrier is full, when
 * all tensors' have. */
COMMTUNE_API commtune_code commtune_wait(commtune_session* session, size_t tensor);
COMMTUNE_API commtune_code commtune_wait_all(commtune_session* session);

typedef struct commtune_statistics {
  uint64_t iterations;     /* that began, under all plans */
  uint64_t messages;       /* an iteration of the plan in force */
  uint64_t gradient_bytes; /* of one rank, an iteration */
  double waited_seconds;   /* that calls of wait blocked, all threads and iterations together */
  double copied_seconds;   /* that the library copied between gradients and fusion buffers, this plan */
} commtune_statistics;

/* After the last wait of an iteration. */
COMMTUNE_API commtune_code commtune_get_statistics(commtune_session* session,
                                                   commtune_statistics* statistics);

/* A message's way through the last iteration, in seconds since commtune_begin(). */
typedef struct commtune_message_times {
  double queued; /* its last gradient was ready */
  double started;
  double reduced;     /* this rank had ended its part of the sum */
  double distributed; /* it was back */
} commtune_message_times;

/* After the last wait of an iteration.
 *
 * capacity  entries that `times` has room for
 * count     messages of the plan in force, of which the first `capacity` are written */
COMMTUNE_API commtune_code commtune_get_message_times(commtune_session* session, size_t capacity,
                                                      commtune_message_times* times, size_t* count);

/* For a rank that does not train, after commtune_layout(): serves under one plan after another until the
 * workers leave. */
COMMTUNE_API commtune_code commtune_serve(commtune_session* session);

/* Collective: ends the session. Returns when no rank needs this one any more. */
COMMTUNE_API commtune_code commtune_leave(commtune_session* session);

/* For a program that has heard elsewhere that a rank may be gone, such as by an error of its own collectives:
 * looks at all ranks for so long, also at those that nothing is awaited from. After commtune_layout(), and
 * not while another call is under way.
 *
 * returns  COMMTUNE_PEER_LOST naming who is gone; COMMTUNE_OK: nobody that can be seen from here. Over
 *          "verbs" nobody can that nothing is awaited from */
COMMTUNE_API commtune_code commtune_look_for_lost(commtune_session* session, double seconds);

/* Ends the session of every rank, without waiting for any of them; they are told why. Then only
 * commtune_destroy(). A job of Open MPI's ends altogether. */
COMMTUNE_API void commtune_abort(commtune_session* session, const char* why);

/* Set all of it to zero, then what is wanted: zero means the default. */
typedef struct commtune_probe_options {
  const char* cluster;    /* its name; NULL: "training" */
  double budget_seconds;  /* that it may take, but for a few seconds; 0: by the number of hosts, 60 at most */
  uint64_t traffic_bytes; /* that any one rank may send in all; 0: no limit */
  const char* profile; /* rank 0's: JSON text ("commtune/profile/1") of the model whose plan is wanted, which
                          tells what is worth measuring; NULL: no certain model's */
} commtune_probe_options;

/* Collective, apart from any session, and not while one sends: what the network and the memory of these ranks
 * do, as `tune probe` measures it. Over a connection of its own, which ends with the call.
 *
 * join     as for commtune_join(): who takes part, and over which transport
 * options  equal on all ranks, but for `profile`; NULL: all defaults
 * cluster  on rank 0 JSON text ("commtune/cluster/1"), to be given to commtune_free(); NULL elsewhere
 * returns  on all ranks that can still be reached: COMMTUNE_CONFLICT where another probe runs on a host */
COMMTUNE_API commtune_code commtune_probe(const commtune_join_options* join,
                                          const commtune_probe_options* options, char** cluster);

/* On one rank alone, from any thread: the plan of a model on a cluster, as `tune MODEL --barrier WHICH`
 * chooses it.
 *
 * profile, cluster  JSON text
 * full_barrier      not 0: the program waits for all gradients together; 0: each layer for its own
 * plan              JSON text, to be given to commtune_free()
 * seconds           of an iteration, predicted; may be NULL
 * returns           COMMTUNE_BAD_INPUT naming the place in profile or cluster; COMMTUNE_POOR_FIT or
 *                   COMMTUNE_NOT_FOUND where the cluster's fits price nothing */
COMMTUNE_API commtune_code commtune_plan(const char* profile, const char* cluster, int workers,
                                         int full_barrier, char** plan, double* seconds);

/* Gives back everything; NULL is allowed. Never waits for another rank, but in a job of Open MPI's. */
COMMTUNE_API void commtune_destroy(commtune_session* session);

#ifdef __cplusplus
}
#endif
#endif
