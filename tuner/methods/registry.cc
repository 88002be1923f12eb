#include <algorithm>
#include <array>

#include "tuner/methods/bsp.h"
#include "tuner/methods/buckets.h"
#include "tuner/methods/byte_scheduler.h"
#include "tuner/methods/dear.h"
#include "tuner/methods/ipart.h"
#include "tuner/methods/method.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/p3.h"
#include "tuner/methods/wfbp.h"

namespace commtune::tuner {

namespace {

constexpr auto kA2A = Architecture::kAllReduce;
constexpr auto kPs = Architecture::kParameterServer;
/// Between a method and a transport; no name of either has one.
constexpr char kOver = '@';

const std::array kMethods{
    Method{"bsp-ps", "BSP-PS", "bulk-synchronous, BytePS partition", kPs, Effort::kDefault, bsp},
    Method{"bsp-a2a", "BSP-A2A", "bulk-synchronous, one all-reduce", kA2A, Effort::kDefault, bsp},
    Method{"wfbp-ps", "WFBP-PS", "Zhang et al., ATC 2017", kPs, Effort::kDefault, wfbp},
    Method{"wfbp-a2a", "WFBP-A2A", "Awan et al., PPoPP 2017", kA2A, Effort::kDefault, wfbp},
    Method{"mg-wfbp", "MG-WFBP", "Shi et al., INFOCOM 2019", kA2A, Effort::kTuned, mg_wfbp},
    Method{"bytescheduler-ps", "ByteScheduler-PS", "Peng et al., SOSP 2019", kPs, Effort::kReordered,
           tuned_byte_scheduler},
    Method{"bytescheduler-a2a", "ByteScheduler-A2A", "Peng et al., SOSP 2019", kA2A, Effort::kReordered,
           tuned_byte_scheduler},
    Method{"ddp-25mib", "DDP 25 MiB", "Li et al., VLDB 2020", kA2A, Effort::kDefault, ddp_buckets},
    Method{"horovod-128mib", "Horovod 128 MiB", "Sergeev, Del Balso 2018", kA2A, Effort::kDefault,
           horovod_buffers},
    Method{"p3", "P3", "Jayarajan et al., MLSys 2019", kPs, Effort::kReordered, p3},
    Method{"ipart", "iPart", "Wang et al., TPDS 2021", kPs, Effort::kReordered, ipart},
    Method{"dear", "DeAR", "Zhang et al., 2023", kA2A, Effort::kReordered, tuned_dear},
    Method{"exact-fusion", "Exact fusion", "MG-WFBP's problem solved exactly", kA2A, Effort::kTuned,
           exact_fusion_plan},
};

}  // namespace

std::span<const Method> methods() { return kMethods; }

std::string method_over(std::string_view method, std::string_view transport) {
  return std::string(method).append(1, kOver).append(transport);
}

std::string_view base_method(std::string_view name) { return name.substr(0, name.find(kOver)); }

const Method* find_method(std::string_view name) {
  const auto found = std::ranges::find(kMethods, base_method(name), &Method::name);
  return found == kMethods.end() ? nullptr : &*found;
}

}  // namespace commtune::tuner
