#include "executor/collectives/nccl/told_tuning.h"

#include <cstdlib>

namespace commtune::nccl {
namespace {

constexpr const char* kAlgorithm = "NCCL_ALGO";
constexpr const char* kProtocol = "NCCL_PROTO";

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void restore(const char* name, const std::optional<std::string>& value) {
  if (value) {
    setenv(name, value->c_str(), 1);
  } else {
    unsetenv(name);
  }
}

}  // namespace

ToldTuning::ToldTuning(const NcclTuning& tuning) : told_(!tuning.is_own_choice()) {
  if (!told_) return;
  algorithm_before_ = variable(kAlgorithm);
  protocol_before_ = variable(kProtocol);
  setenv(kAlgorithm, std::string(name_of(tuning.algorithm)).c_str(), 1);
  setenv(kProtocol, std::string(name_of(tuning.protocol)).c_str(), 1);
}

ToldTuning::~ToldTuning() {
  if (!told_) return;
  restore(kAlgorithm, algorithm_before_);
  restore(kProtocol, protocol_before_);
}

}  // namespace commtune::nccl
