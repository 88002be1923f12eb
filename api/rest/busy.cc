#include "api/rest/busy.h"

#include <fmt/format.h>

#include "perfmodel/error.h"

namespace commtune::api::rest {
namespace {

double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Permit::Permit(std::counting_semaphore<>& places, std::chrono::milliseconds wait) : places_(places) {
  if (!places_.try_acquire_for(wait))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("other questions kept the service busy for {:g} s (--compute-time): ask again later",
                    seconds(wait)));
}

tuner::Watch time_limit(std::chrono::milliseconds most, const std::atomic<bool>& stopping) {
  using Clock = std::chrono::steady_clock;
  return [most, &stopping, end = Clock::now() + most](double fraction) {
    if (stopping) throw Error(ErrorCode::kInterrupted, "the service stops: ask again later");
    if (Clock::now() < end) return;
    throw Error(ErrorCode::kBadInput,
                fmt::format("the question takes longer than the {:g} s that one request may compute "
                            "(--compute-time), {:.0f} % was done: ask for fewer points or fewer workers",
                            seconds(most), 100 * fraction));
  };
}

}  // namespace commtune::api::rest
