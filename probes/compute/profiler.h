#pragma once
// A model's layers, timed one by one on this machine's processor.

#include <functional>
#include <string>

#include "perfmodel/profile.h"
#include "probes/compute/architecture.h"

namespace commtune::compute {

struct ProfilerOptions {
  int batch = 0;        ///< samples; 0: the one of the profile that lends the tensors
  int threads = 0;      ///< 0: as many as the library takes by itself
  Seconds budget{60};   ///< wall time; each shape is timed once at least, whatever the budget
  double width = 0.03;  ///< a time is done when the half width of its median's 95 % interval is so narrow
  int warmup = 1;       ///< untimed repetitions
  int iterations = 5;   ///< at least, if the budget allows
  int max_iterations = 200;
  std::string device;  ///< of the origin: the processor's name
  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

struct ProfilerProgress {
  std::string what;
  double fraction = 0;
  Seconds left{};
};

/// Times every layer's forward and backward computation with oneDNN. Layers of equal shape are timed once.
///
/// architecture  the layers, with the names that `tensors` has
/// tensors       a profile of the same model: its layers' gradient tensors and their order are taken
/// progress      called before each shape; false ends it with Error{kInterrupted}; may be empty
/// returns       a profile whose origin says device, threads, library, and how narrow the times are
/// throws        Error{kBadInput} if the layers' names differ; Error{kUnavailable} as make_kernel()
Profile profile_layers(const Architecture& architecture, const Profile& tensors,
                       const ProfilerOptions& options,
                       const std::function<bool(const ProfilerProgress&)>& progress = {});

}  // namespace commtune::compute
