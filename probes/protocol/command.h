#pragma once
// What rank 0 tells the others to do, and what they tell back: the probes' own messages, on the control
// channel. All ranks run the same program, so these travel as they lie in memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "executor/transport/transport.h"
#include "perfmodel/plan.h"
#include "probes/moments.h"
#include "probes/sample.h"
#include "probes/step_kind.h"

namespace commtune::probes {

// Control numbers from 101 on are the probes': those of sessions (executor/session/exchange.cc) begin at 1,
// those of transports end at the last one.
inline constexpr Tag kCommandTag = make_tag(TagSpace::kControl, 101);
inline constexpr Tag kReportTag = make_tag(TagSpace::kControl, 102);

enum class Action : std::uint32_t {
  kAnswer,   ///< nothing but an answer: for the clocks, and to see who is there
  kMeasure,  ///< one repetition of `quantity`
  kStop,     ///< the probe is over
};

/// The pairs that measure at the same time.
enum class Pairing : std::uint32_t {
  kNone,     ///< the quantity's own source and destination
  kForward,  ///< a round of the tournament: first to second
  kReverse,  ///< second to first
};

struct Command {
  Action action = Action::kAnswer;
  Pairing pairing = Pairing::kNone;
  StepKind steps = StepKind::kTimeline;
  std::uint64_t sequence = 0;  ///< counts commands; tags of what is measured come from it
  Quantity quantity;
  std::uint64_t bytes = 0;
  std::int32_t messages = 1;     ///< in all; the quantity says how many at once
  std::int32_t round = 0;        ///< of the tournament between hosts
  Nanoseconds start{0};          ///< on the receiver's clock
  Nanoseconds limit{0};          ///< how long this may take before a rank gives up
  double pace = 0;               ///< bytes per second that ranks send to other hosts at most; 0: no limit
  double sm_share = 1;           ///< of a GPU's multiprocessors that steps keep busy
  std::array<char, 512> text{};  ///< kStop: why the probe failed; empty if it did not
};
static_assert(std::is_trivially_copyable_v<Command>);

enum class Failure : std::int32_t {
  kNone,
  kGaveUp,       ///< it waited for somebody for too long
  kUnavailable,  ///< there is no such operation here; nothing was measured
};

/// What a rank has to say about a command.
struct FollowerReportHead {
  std::uint64_t sequence = 0;
  Failure failed = Failure::kNone;
  std::int32_t waited_for = -1;  ///< for this rank, if it failed
  Nanoseconds received{0};       ///< the command; its own clock
  Nanoseconds answered{0};       ///< this report left
  Nanoseconds started{0};        ///< its part of the measurement; 0 if it had none
  std::int32_t ends = 0;         ///< how many follow
  std::int32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<FollowerReportHead>);

/// On rank 0's clock once it has arrived there.
struct FollowerReport {
  FollowerReportHead head;
  /// Operation: when each message had ended here. One way and both ways: when each message had arrived here
  /// (on a rank that only sends: none). One message alone: durations of round trips, at the source only.
  /// Local quantities: durations.
  std::vector<Nanoseconds> ends;
};

std::vector<std::byte> pack(const FollowerReport& report);
/// Throws Error{kConflict} for bytes that no report of this program has.
FollowerReport unpack_report(std::span<const std::byte> bytes);

}  // namespace commtune::probes
