#include "executor/base/short_turns.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

namespace commtune {
namespace {

constexpr std::uint64_t kTurn = 100'000;  // the kernel gives no shorter ones

/// The kernel's struct sched_attr as it was first (sched_setattr(2)), which glibc has since 2.41 only.
struct Settings {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

std::optional<Settings> settings_of(int thread) {
  Settings settings{};
  if (syscall(SYS_sched_getattr, thread, &settings, sizeof settings, 0) != 0) return std::nullopt;
  return settings;
}

bool ask_for(Settings settings, std::uint64_t turn) {
  settings.runtime = turn;
  return syscall(SYS_sched_setattr, 0, &settings, 0) == 0;
}

}  // namespace

ShortTurns::ShortTurns() {
  const std::optional<Settings> settings = settings_of(0);
  if (!settings || settings->policy != SCHED_OTHER) return;
  before_ = settings->runtime;
  asked_ = ask_for(*settings, kTurn);
}

ShortTurns::~ShortTurns() {
  if (!asked_) return;
  if (const std::optional<Settings> settings = settings_of(0)) ask_for(*settings, before_);
}

std::uint64_t turn_of_thread(int thread) {
  const std::optional<Settings> settings = settings_of(thread);
  return settings ? settings->runtime : 0;
}

}  // namespace commtune
