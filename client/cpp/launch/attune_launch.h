/* attune_launch for C, and for whatever can call C: runtime.h has the same for C++, and says more about each call.
 *
 *   attune_runtime_options options = {.struct_size = sizeof options, .server = "unix:/run/attune/attuned.sock"};
 *   attune_runtime* runtime;
 *   attune_attention* attention;
 *   if (attune_runtime_open(&options, &runtime) != ATTUNE_OK) fail(attune_error_message());
 *   attune_attention_open(runtime, "b1.h32.kvh8.q1.kv1.d128.bf16.page16", &attention);
 *   ...
 *   if (attune_run(attention, stream, &tensors, &shape) != ATTUNE_OK) own_kernel(stream, ...);
 *
 * Every function but the *_close ones returns a status. Every function may be called from any thread at once. Objects
 * are closed after those that were opened from them; work that was launched must have ended before the runtime is
 * closed. Close takes null. No exception leaves any function. */
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_ATTUNE_LAUNCH_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_ATTUNE_LAUNCH_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes of gRPC and abseil. */
typedef enum attune_status {
  ATTUNE_OK = 0,
  ATTUNE_UNKNOWN = 2,
  ATTUNE_INVALID_ARGUMENT = 3, /* the message names the argument, its value and what is allowed */
  ATTUNE_DEADLINE_EXCEEDED = 4,
  ATTUNE_NOT_FOUND = 5,
  ATTUNE_RESOURCE_EXHAUSTED = 8, /* no scratch memory; nothing was launched */
  ATTUNE_FAILED_PRECONDITION = 9,
  ATTUNE_ABORTED = 10, /* the GPU reported a fault of earlier work */
  ATTUNE_INTERNAL = 13,
  ATTUNE_UNAVAILABLE = 14, /* no kernel for this shape yet, and nothing was launched; or no NVIDIA driver */
  ATTUNE_DATA_LOSS = 15
} attune_status;

/* Why the calling thread's last call failed. Valid until its next call that fails; empty when none did. */
const char* attune_error_message(void);

typedef struct attune_runtime attune_runtime;
typedef struct attune_attention attune_attention;
typedef struct attune_plan attune_plan;

/* Where scratch memory comes from. Called from any thread, with the GPU's context current and the runtime's locks held,
 * seldom: it must neither call the runtime nor wait for a thread that may be in attune_run. */
typedef struct attune_scratch_allocator {
  void* user;
  /* `bytes` of device memory at a multiple of 256, for work in the order of `stream`, in no graph that is being
   * captured; 0 when there is none. */
  uint64_t (*allocate)(void* user, size_t bytes, void* stream);
  /* Called when the runtime is closed, for all but the memory of graphs that are still there; the stream of the handle
   * may be gone. Null: nothing is freed. */
  void (*free)(void* user, uint64_t address, size_t bytes, void* stream);
} attune_scratch_allocator;

/* Zeros are the defaults; all is copied but the allocator's `user`. */
typedef struct attune_runtime_options {
  size_t struct_size;        /* sizeof(attune_runtime_options): fields may be added at the end */
  const char* server;        /* "host:port", "unix:/path"; null: none */
  const char* snapshot;      /* a file of `attune export`, for when no server answers; null: none */
  int32_t device;            /* the GPU, as this process counts them */
  const char* server_device; /* the server's name for it; null: found by UUID, else by model */
  int32_t accept_heuristic;  /* not 0: also kernels that nobody measured for a shape like this */
  int64_t revalidate_ms;     /* between looks at whether the answers in use still are the server's; 0: 20,000 */
  int64_t hold_ms;           /* before a shape without an answer is asked for again; 0: 30,000 */
  attune_scratch_allocator scratch_allocator; /* `allocate` null: cuMemAlloc */
} attune_runtime_options;

attune_status attune_runtime_open(const attune_runtime_options* options, attune_runtime** runtime);
void attune_runtime_close(attune_runtime* runtime);

/* Uses a serialized attune.v1.GetBestResponse with its artifact for its problem from now on. */
attune_status attune_runtime_load(attune_runtime* runtime, const void* answer, size_t bytes);

/* Has the answers in use compared with the server's, in the background. */
attune_status attune_runtime_refresh(attune_runtime* runtime);

/* Attention of one form: a problem's text (docs/problems.md), of which batch, q and kv do not count. */
attune_status attune_attention_open(attune_runtime* runtime, const char* form, attune_attention** attention);
void attune_attention_close(attune_attention* attention);

/* With varlen and pages seq_q and seq_kv are the longest that a sequence may be. */
typedef struct attune_shape {
  int64_t batch;
  int64_t seq_q;
  int64_t seq_kv;
} attune_shape;

/* Device addresses, 0 for what the problem has not; docs/problems.md has shapes and types. q, k, v and o lie as the
 * problem's layout says, at multiples of 16 bytes. */
typedef struct attune_tensors {
  uint64_t q;
  uint64_t k;
  uint64_t v;
  uint64_t o;   /* written */
  uint64_t lse; /* written */
  uint64_t sinks;
  uint64_t cu_seqlens_q;
  uint64_t cu_seqlens_k;
  uint64_t seqused_k;
  uint64_t block_table;
  uint64_t k_scale; /* of 8-bit k and v */
  uint64_t v_scale;
} attune_tensors;

/* Has the kernels of `count` shapes found and loaded, waiting at most `timeout_ms`. */
attune_status attune_warm(attune_attention* attention, const attune_shape* shapes, size_t count, int64_t timeout_ms);

/* Launches on `stream` (CUstream, cudaStream_t), which may be capturing. Never calls the server: ATTUNE_UNAVAILABLE,
 * and nothing launched, until the background has the kernel. */
attune_status attune_run(attune_attention* attention, void* stream, const attune_tensors* tensors,
                         const attune_shape* shape);

/* Elements from one entry of a dimension to the next; a dimension with one entry may have any. */
typedef struct attune_spacing {
  int64_t batch; /* sequences; of k and v with pages: pages */
  int64_t head;
  int64_t row;
} attune_spacing;

typedef struct attune_placement {
  attune_spacing q;
  attune_spacing k;
  attune_spacing v;
  attune_spacing o;
  /* Of the scales of 8-bit k and v, batch and head: heads_kv and 1 as the problem has them; 0 and 0 is one for all. */
  attune_spacing k_scale;
  attune_spacing v_scale;
  double softmax_scale; /* 0: 1 / sqrt(head_dim) */
} attune_placement;

/* attune_run for tensors that lie otherwise than in the problem's layout, where the kernel can read them so, and for
   another softmax scale, where it computes that. */
attune_status attune_run_placed(attune_attention* attention, void* stream, const attune_tensors* tensors,
                                const attune_shape* shape, const attune_placement* placement);

/* The kernel that attune_run would launch now, to launch it in scratch memory of the caller's. */
attune_status attune_plan_open(attune_attention* attention, const attune_shape* shape, attune_plan** plan);
void attune_plan_close(attune_plan* plan);

/* `scratch_bytes` of device memory for each run, of which the first `zeroed_bytes` must be zero before the first run in
 * it; runs leave them so. */
attune_status attune_plan_scratch(const attune_plan* plan, size_t* scratch_bytes, size_t* zeroed_bytes);

/* Launches on `stream`; `scratch` is a multiple of 256, used by no other run before this one has ended. */
attune_status attune_plan_enqueue(const attune_plan* plan, void* stream, const attune_tensors* tensors,
                                  uint64_t scratch);

#ifdef __cplusplus
}
#endif

#endif /* ATTUNE_CLIENT_CPP_LAUNCH_ATTUNE_LAUNCH_H_ */
