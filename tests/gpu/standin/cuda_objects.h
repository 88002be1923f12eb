#pragma once
// What the stand-in's handles point to. Its libraries share them.

#include <cuda.h>

#include <atomic>

#include "tests/gpu/standin/stream.h"

namespace commtune::standin {

/// What of this process is under way on its GPUs, and slows each other.
struct Activity {
  std::atomic<int> collectives{0}, layers{0};
};

}  // namespace commtune::standin

struct CUctx_st {
  int device = 0;
};
struct CUstream_st {
  commtune::standin::WorkStream works;
  int priority = 0;
  commtune::standin::Activity* activity = nullptr;
};
struct CUevent_st {
  commtune::standin::StreamEvent place;
  bool timed = false;
};
struct CUmod_st {
  int unused = 0;
};

#define COMMTUNE_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))
