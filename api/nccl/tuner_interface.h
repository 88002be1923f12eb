#pragma once
// What NCCL asks of a tuner plugin, versions 4 to 7 of that interface (NVIDIA/nccl,
// src/include/plugin/tuner): the layout of what is passed, in our words. A plugin is a shared library with a
// variable ncclTunerPlugin_v<version>.

#include <cstddef>
#include <cstdint>

namespace commtune::nccl_tuner {

/// As nccl.h's results.
using Result = int;
inline constexpr Result kSuccess = 0;

/// Collectives by NCCL's numbers.
enum Function : int { kBroadcast = 0, kReduce = 1, kAllGather = 2, kReduceScatter = 3, kAllReduce = 4 };

/// NCCL's log: levels as in its debug header, what it is about as bits.
using Logger = void (*)(int level, unsigned long about, const char* file, int line, const char* format, ...);
inline constexpr int kLogWarning = 2, kLogInfo = 3;
inline constexpr unsigned long kLogTuning = 64;

inline constexpr int kAlgorithms = 7, kProtocols = 3;
inline constexpr float kIgnored = -1.0F;  ///< an entry of the table that may not be chosen

struct NvlinkDomains {
  int domains, fewest_ranks, most_ranks;
};

/// table      of costs in microseconds, algorithms times protocols, by rows; the least one is chosen
/// piped      collectives that are asked for at once
/// registered whether the user's buffer can be registered
/// channels   to be set, or left
using TuningFunction = Result (*)(void* context, int function, std::size_t bytes, int piped, float** table,
                                  int algorithms, int protocols, int registered, int* channels);
using Close = Result (*)(void* context);
/// constants  of NCCL's cost model: may be changed
using StartFunction = Result (*)(void** context, std::uint64_t communicator, std::size_t ranks,
                                 std::size_t nodes, Logger log, NvlinkDomains* domains, void* constants);

struct TunerV4 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  TuningFunction get_tuning;
  Close close;
};
struct TunerV5 {
  const char* name;
  StartFunction init;
  TuningFunction get_tuning;
  Close close;
};
/// Versions 6 and 7 differ by the constants alone.
struct TunerV6 {
  const char* name;
  StartFunction init;
  TuningFunction get_tuning;
  Close close;
  /// May be nullptr: NCCL's own chunks.
  Result (*get_chunk)(void* context, int function, std::size_t bytes, int algorithm, int protocol,
                      int channels, std::size_t* chunk);
};

}  // namespace commtune::nccl_tuner
