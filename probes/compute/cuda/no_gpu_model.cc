#include "perfmodel/base/error.h"
#include "probes/compute/cuda/gpu_model.h"

namespace commtune::compute {

std::string why_no_gpu_model(const std::vector<std::string>&) {
  return "this commtune was built without CUDA: it cannot time layers on a GPU";
}

std::unique_ptr<GpuModel> make_gpu_model(const Architecture&, const Profile&,
                                         const GpuModelOptions& options) {
  throw Error(ErrorCode::kUnavailable, why_no_gpu_model(options.library_folders));
}

}  // namespace commtune::compute
