#pragma once
// How the stand-in's NCCL carries out a collective, and what that costs: as its variables say, as a tuner
// plugin does, or else by rings with the simple protocol, whatever that costs: a choice that can be bettered.

#include <cstdint>
#include <optional>
#include <string>

#include "api/nccl/tuner_interface.h"
#include "perfmodel/nccl/tuning.h"

namespace commtune::standin {

/// Microseconds, and bytes a second; 0: no limit. By the settings NCCL_<ALGORITHM>_<PROTOCOL>_ALPHA_US and
/// ..._BYTES_PER_S, in capitals, else by NCCL_ALPHA_US and NCCL_BYTES_PER_S.
struct NcclCosts {
  double alpha_microseconds = 0, bytes_per_second = 0;
  double microseconds(double bytes) const;
};
NcclCosts nccl_costs(const NcclTuning& tuning);

/// Of one communicator. Rings have all collectives, trees all-reduce alone; it has no other algorithm.
class NcclChoice {
 public:
  /// Reads NCCL_ALGO and NCCL_PROTO, and loads the plugin that NCCL_TUNER_PLUGIN names, if any. The ranks are
  /// on setting NCCL_NODES hosts.
  ///
  /// channels  that the communicator's configuration asks for; 0: none
  NcclChoice(int ranks, std::uint32_t channels);
  ~NcclChoice();
  NcclChoice(const NcclChoice&) = delete;
  NcclChoice& operator=(const NcclChoice&) = delete;

  /// function  by NCCL's number
  /// bytes     of the whole buffer
  /// returns   nullopt: the variables name what there is not
  std::optional<NcclTuning> of(int function, std::size_t bytes) const;

 private:
  void open_plugin(const std::string& file, std::size_t ranks);
  bool is_offered(const NcclTuning& tuning, int function) const;

  std::string algorithm_, protocol_;  // empty: any
  std::uint32_t channels_;
  const nccl_tuner::TunerV5* plugin_ = nullptr;
  void* context_ = nullptr;
};

/// The last choice of this process.
std::string last_nccl_choice();

}  // namespace commtune::standin
