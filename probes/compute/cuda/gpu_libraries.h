#pragma once
// cuDNN and cuBLAS, loaded when the program runs.

#include <string>
#include <vector>

#include "probes/compute/cuda/cublas_api.h"
#include "probes/compute/cuda/cudnn_api.h"

namespace commtune::compute {

struct GpuLibraries {
  cudnn::Functions cudnn;
  cublas::Functions cublas;
  std::string cudnn_file, cublas_file;  ///< as they were loaded
  std::string why_not;                  ///< empty: both are there
};

/// The library path first (LD_LIBRARY_PATH, the system's folders), then `folders`. libcudnn.so.9 and
/// libcublas.so.13 or .12. Loaded once for each call and never unloaded.
GpuLibraries load_gpu_libraries(const std::vector<std::string>& folders);

/// throws  Error{kUnavailable} naming call and reason where the status is not success
void expect(const cudnn::Functions& functions, cudnn::Status status, const char* call);
void expect(const cublas::Functions& functions, cublas::Status status, const char* call);

std::string cudnn_version(std::size_t version);  ///< 92000: "9.20.0"
std::string cublas_version(int version);         ///< 130101: "13.1.1"

}  // namespace commtune::compute
