#include "probes/compute/cuda/gpu_libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "executor/base/shared_library.h"
#include "perfmodel/base/error.h"

namespace commtune::compute {
namespace {

/// The first of these files that loads: by its name alone, then in the folders.
std::optional<SharedLibrary> first_of(const std::vector<const char*>& names,
                                      const std::vector<std::string>& folders) {
  for (const char* name : names) {
    SharedLibrary library(name);
    if (library.is_there()) return library;
  }
  for (const std::string& folder : folders) {
    for (const char* name : names) {
      SharedLibrary library(folder + "/" + name);
      if (library.is_there()) return library;
    }
  }
  return std::nullopt;
}

std::string not_found(const char* what, const std::string& files, const char* package,
                      const std::vector<std::string>& folders) {
  const std::string places =
      folders.empty() ? "the library path" : fmt::format("the library path and {}", fmt::join(folders, ", "));
  return fmt::format(
      "{} ({}) is not in {}: install it (from PyPI: {}), or name its folder in LD_LIBRARY_PATH", what, files,
      places, package);
}

std::string lacks(const SharedLibrary& library) {
  return fmt::format("{} has no {}: it is too old", library.file(), library.missing());
}

}  // namespace

GpuLibraries load_gpu_libraries(const std::vector<std::string>& folders) {
  GpuLibraries result;
  // cuDNN loads cuBLAS and NVRTC by their names: they are found when they are there already.
  std::optional<SharedLibrary> cublas = first_of({"libcublas.so.13", "libcublas.so.12"}, folders);
  if (!cublas) {
    result.why_not = not_found("cuBLAS", "libcublas.so.13 or .12", "nvidia-cublas", folders);
    return result;
  }
  first_of({"libnvrtc.so.13", "libnvrtc.so.12"}, folders);
  std::optional<SharedLibrary> cudnn = first_of({"libcudnn.so.9"}, folders);
  if (!cudnn) {
    result.why_not = not_found("cuDNN", "libcudnn.so.9", "nvidia-cudnn-cu13", folders);
    return result;
  }
#define COMMTUNE_FIND(MEMBER, SYMBOL, RESULT, PARAMETERS) cublas->find(result.cublas.MEMBER, #SYMBOL);
  COMMTUNE_CUBLAS_FUNCTIONS(COMMTUNE_FIND)
#undef COMMTUNE_FIND
#define COMMTUNE_FIND(MEMBER, SYMBOL, RESULT, PARAMETERS) cudnn->find(result.cudnn.MEMBER, #SYMBOL);
  COMMTUNE_CUDNN_FUNCTIONS(COMMTUNE_FIND)
#undef COMMTUNE_FIND
  result.cublas_file = cublas->file();
  result.cudnn_file = cudnn->file();
  if (!cublas->missing().empty()) result.why_not = lacks(*cublas);
  if (!cudnn->missing().empty()) result.why_not = lacks(*cudnn);
  return result;
}

void expect(const cudnn::Functions& functions, cudnn::Status status, const char* call) {
  if (status == cudnn::kSuccess) return;
  std::array<char, 512> more{};
  functions.last_error(more.data(), more.size());
  more.back() = '\0';
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: {} ({}){}{}", call, functions.error_text(status),
                                                   status, more.front() == '\0' ? "" : ": ", more.data()));
}

void expect(const cublas::Functions& functions, cublas::Status status, const char* call) {
  if (status == cublas::kSuccess) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{}: {} ({})", call, functions.error_text(status), status));
}

std::string cudnn_version(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string cublas_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace commtune::compute
