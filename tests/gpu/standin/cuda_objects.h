#pragma once
// What the stand-in's handles point to. Its libraries share them.

#include <cuda.h>

#include "tests/gpu/standin/stream.h"

struct CUctx_st {
  int device = 0;
};
struct CUstream_st {
  commtune::standin::WorkStream works;
  int priority = 0;
};
struct CUevent_st {
  commtune::standin::StreamEvent place;
  bool timed = false;
};
struct CUmod_st {
  int unused = 0;
};

#define COMMTUNE_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))
