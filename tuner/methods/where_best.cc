#include "tuner/methods/where_best.h"

namespace commtune::tuner {

namespace {

constexpr MethodCell kMethodCell[] = {
#include "tuner/methods/where_best.inc"
};

}  // namespace

std::span<const MethodCell> where_best() { return kMethodCell; }

}  // namespace commtune::tuner
