#include <algorithm>
#include <array>

#include "tuner/methods/asc_wfbp.h"
#include "tuner/methods/bsp.h"
#include "tuner/methods/buckets.h"
#include "tuner/methods/byte_scheduler.h"
#include "tuner/methods/byteps.h"
#include "tuner/methods/d_credit.h"
#include "tuner/methods/dear.h"
#include "tuner/methods/ipart.h"
#include "tuner/methods/method.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/p3.h"
#include "tuner/methods/us_byte.h"
#include "tuner/methods/wfbp.h"

namespace commtune::tuner {

namespace {

constexpr auto kA2A = Architecture::kAllReduce;
constexpr auto kPs = Architecture::kParameterServer;
constexpr auto kEven = Assignment::kEven;
constexpr auto kWhole = Assignment::kHashed;
/// Between a method and a transport; no name of either has one.
constexpr char kOver = '@';

const std::array kMethods{
    Method{"bsp-ps", "BSP-PS", "bulk-synchronous, BytePS partition",
           "everything after the backward pass, cut into 4,096,000 B", MethodSource::kPublished, kPs, kWhole,
           Effort::kDefault, 2, bsp},
    Method{"bsp-a2a", "BSP-A2A", "bulk-synchronous, one all-reduce",
           "everything after the backward pass, in one message", MethodSource::kPublished, kA2A, kEven,
           Effort::kDefault, 1, bsp},
    Method{"wfbp-ps", "WFBP-PS", "Zhang et al., ATC 2017",
           "a tensor as soon as its gradient exists, cut into 4,096,000 B", MethodSource::kPublished, kPs,
           kWhole, Effort::kDefault, 2, wfbp},
    Method{"wfbp-a2a", "WFBP-A2A", "Awan et al., PPoPP 2017",
           "a message a tensor, as soon as its gradient exists", MethodSource::kPublished, kA2A, kEven,
           Effort::kDefault, 1, wfbp},
    Method{"mg-wfbp", "MG-WFBP", "Shi et al., INFOCOM 2019",
           "neighbours fused by a greedy rule over a fitted line", MethodSource::kPublished, kA2A, kEven,
           Effort::kTuned, 1, mg_wfbp},
    Method{"bytescheduler-ps", "ByteScheduler-PS", "Peng et al., SOSP 2019",
           "equal pieces by priority with a credit, both tuned; a barrier a layer", MethodSource::kPublished,
           kPs, kWhole, Effort::kReordered, 4, tuned_byte_scheduler, untuned_byte_scheduler},
    Method{"bytescheduler-a2a", "ByteScheduler-A2A", "Peng et al., SOSP 2019",
           "equal pieces by priority with a credit, both tuned; a barrier a layer", MethodSource::kPublished,
           kA2A, kEven, Effort::kReordered, 4, tuned_byte_scheduler, untuned_byte_scheduler},
    Method{"ddp-25mib", "DDP 25 MiB", "Li et al., VLDB 2020", "buckets of 25 MiB, the first of 1 MiB",
           MethodSource::kPublished, kA2A, kEven, Effort::kDefault, 1, ddp_buckets},
    Method{"horovod-128mib", "Horovod 128 MiB", "Sergeev, Del Balso 2018",
           "what has appeared by each cycle of 1 ms, up to 128 MiB", MethodSource::kPublished, kA2A, kEven,
           Effort::kDefault, 1, horovod_buffers},
    Method{"byteps", "BytePS", "Jiang et al., OSDI 2020",
           "4,096,000 B by priority, each piece whole to the server that its key hashes to",
           MethodSource::kPublished, kPs, kWhole, Effort::kReordered, 1, byteps},
    Method{"p3", "P3", "Jayarajan et al., MLSys 2019",
           "slices of 50,000 parameters by priority, one at a time, dealt out to servers in turn",
           MethodSource::kPublished, kPs, kWhole, Effort::kReordered, 2, p3},
    Method{"ipart", "after iPart", "Wang et al., TPDS 2021",
           "unequal parts for each direction: pushed under the backward pass, pulled under the forward pass",
           MethodSource::kReconstructed, kPs, kEven, Effort::kReordered, 3, ipart},
    Method{"dear", "DeAR", "Zhang et al., 2023",
           "reduce-scatters under the backward pass, all-gathers under the next forward pass",
           MethodSource::kPublished, kA2A, kEven, Effort::kReordered, 1, tuned_dear},
    Method{"exact-fusion", "after OF-WFBP", "OF-WFBP, Parallel Computing 2023",
           "neighbours fused so that the last gradient is back as early as any fusion allows",
           MethodSource::kReconstructed, kA2A, kEven, Effort::kTuned, 1, exact_fusion_plan},
    Method{"us-byte", "after US-Byte", "US-Byte, TPDS 2024",
           "exact fusion under the backward pass, then unequal blocks in forward order",
           MethodSource::kReconstructed, kA2A, kEven, Effort::kReordered, 1, us_byte},
    Method{"d-credit", "after D-Credit", "D-Credit, TNSE 2025",
           "equal pieces by priority, with a window of their own each", MethodSource::kReconstructed, kPs,
           kWhole, Effort::kReordered, 1, d_credit},
    Method{"asc-wfbp", "after ASC-WFBP", "Shi et al., INFOCOM 2021",
           "fused neighbours, several all-reduces at once, which share their start-ups",
           MethodSource::kReconstructed, kA2A, kEven, Effort::kReordered, 1, asc_wfbp},
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
