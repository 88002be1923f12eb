#pragma once
// One piece of work as oneDNN computes it, ready to be run again and again.

#include <functional>
#include <memory>
#include <string>

#include "probes/compute/architecture.h"

namespace commtune::compute {

/// Its memory is allocated and filled when it is made, in the layouts that the library likes best; so what is
/// timed is the computation and no conversion. float32.
struct Kernel {
  std::function<void()> forward;
  std::function<void()> backward;  ///< gradients of the input and of the parameters
};

/// throws  Error{kUnavailable} when the library cannot do it or the memory does not suffice for this batch
Kernel make_kernel(const Work& work, int batch);

std::string library_version();  ///< "oneDNN 2.6.3"
int threads();                  ///< that the library will use
void set_threads(int count);    ///< count >= 1; before the first kernel is made

}  // namespace commtune::compute
