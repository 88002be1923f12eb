// commtune-switch: joins network namespaces by an emulated network; see README.md. Started by
// tests/cluster/up.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "perfmodel/base/error.h"
#include "tests/cluster/switch.h"

namespace {

using commtune::Error;
using commtune::ErrorCode;
using namespace commtune::cluster;

constexpr const char* kUsage =
    "usage: commtune-switch --control SOCKET [--spin NS] [--no-realtime] [--may-halt]\n"
    "                       --trunk rate=B/S,delay=NS,buffer=BYTES ...          one per group\n"
    "                       --port netns=PATH,group=N,up=B/S,down=B/S,delay=NS,buffer=BYTES ...\n"
    "\n"
    "Joins the namespaces by an emulated network and runs until it is told to quit (SIGTERM, SIGINT or "
    "'quit' on\n"
    "the control socket). Prints 'ready' once all devices exist. Groups count from 0.\n"
    "\n"
    "example: commtune-switch --control /tmp/s --trunk rate=125000000 \\\n"
    "           --port netns=/run/netns/a,up=125000000 --port netns=/run/netns/b,up=125000000\n";

volatile std::sig_atomic_t stop = 0;

/// Calls `set` for each KEY=VALUE of a comma-separated list.
void each_pair(std::string_view list, const std::function<void(std::string_view, std::string_view)>& set) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view pair = list.substr(0, comma);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      throw Error(ErrorCode::kBadInput, "'" + std::string(pair) + "': expected KEY=VALUE");
    }
    set(pair.substr(0, equals), pair.substr(equals + 1));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

TrunkSettings parse_trunk(std::string_view text) {
  TrunkSettings trunk;
  each_pair(text, [&](std::string_view key, std::string_view value) {
    if (key == "rate") {
      trunk.bytes_per_second = parse_count(key, value, 1);
    } else if (key == "delay") {
      trunk.delay = std::chrono::nanoseconds(parse_count(key, value, 0));
    } else if (key == "buffer") {
      trunk.buffer_bytes = parse_count(key, value, 0);
    } else {
      throw Error(ErrorCode::kBadInput, "'" + std::string(key) + "': must be rate, delay or buffer");
    }
  });
  return trunk;
}

HostOptions parse_host(std::string_view text) {
  HostOptions host;
  each_pair(text, [&](std::string_view key, std::string_view value) {
    if (key == "netns") {
      host.netns = value;
    } else if (key == "group") {
      host.group = static_cast<std::size_t>(parse_count(key, value, 0));
    } else {
      set_port_key(host.port, key, value);
    }
  });
  if (host.netns.empty()) throw Error(ErrorCode::kBadInput, "'" + std::string(text) + "': netns= is missing");
  return host;
}

struct CommandLine {
  SwitchOptions options;
  bool realtime = true;
  bool may_halt = false;
};

CommandLine parse(std::span<char*> arguments) {
  CommandLine result;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view flag = arguments[i];
    if (flag == "--no-realtime") {
      result.realtime = false;
      continue;
    }
    if (flag == "--may-halt") {
      result.may_halt = true;
      continue;
    }
    if (i + 1 == arguments.size())
      throw Error(ErrorCode::kBadInput, std::string(flag) + ": unknown, or its value is missing");
    const std::string_view value = arguments[++i];
    if (flag == "--control") {
      result.options.control_path = value;
    } else if (flag == "--trunk") {
      result.options.groups.push_back(parse_trunk(value));
    } else if (flag == "--port") {
      result.options.hosts.push_back(parse_host(value));
    } else if (flag == "--spin") {
      result.options.spin = std::chrono::nanoseconds(parse_count(flag, value, 0));
    } else {
      throw Error(ErrorCode::kBadInput, std::string(flag) + ": unknown flag");
    }
  }
  if (result.options.groups.empty())
    throw Error(ErrorCode::kBadInput, "--trunk: at least one group is needed");
  for (const HostOptions& host : result.options.hosts) {
    if (host.group >= result.options.groups.size()) {
      throw Error(ErrorCode::kBadInput, "group = " + std::to_string(host.group) + ": no such --trunk");
    }
  }
  return result;
}

/// Deliveries are on time only if the switch runs the moment that it wants to: before everything that the
/// hosts run, timers without slack, no page faults. What is not allowed here is left out; status tells how
/// late deliveries are.
void prefer_punctuality(bool realtime) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  if (!realtime) return;
  sched_param priority{};
  priority.sched_priority = 10;
  if (::sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    std::fputs("commtune-switch: no real-time priority allowed, deliveries may be late\n", stderr);
  }
}

/// For as long as the descriptor is open this machine's idle processors poll instead of halting: in a virtual
/// machine to halt and to be woken takes 30 to 60 us of every hop, more or less from minute to minute. None
/// where that is not allowed. Source: Linux, Documentation/power/pm_qos_interface.
FileDescriptor keep_processors_awake() {
  FileDescriptor latency(::open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC));
  const std::int32_t none = 0;  // microseconds until a processor may be back
  if (!latency || ::write(latency.get(), &none, sizeof none) != sizeof none) {
    std::fputs("commtune-switch: /dev/cpu_dma_latency: idle processors may halt, hosts wake up late\n",
               stderr);
  }
  return latency;
}

void on_signal(int) { stop = 1; }

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: waiting ends
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

int run(std::span<char*> arguments) {
  const CommandLine command = parse(arguments);
  catch_signals();
  Switch hub(command.options);
  prefer_punctuality(command.realtime);
  const FileDescriptor awake = command.may_halt ? FileDescriptor() : keep_processors_awake();
  std::puts("ready");
  std::fflush(stdout);
  hub.run(stop);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    return run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const Error& error) {
    std::fprintf(stderr, "commtune-switch: %s\n", error.what());
    return error.code() == ErrorCode::kBadInput ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commtune-switch: %s\n", error.what());
    return 1;
  }
}
