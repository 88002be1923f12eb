#include "api/launch/mpirun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// Containers often forbid it; Open MPI's shared memory then fails on its first large message.
bool can_read_process_memory() {
  char from = 1;
  char to = 0;
  const iovec local{&to, 1};
  const iovec remote{&from, 1};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == 1;
}

/// "h1:4,h2:*": '*' is Open MPI's word for as many ranks as cores.
std::string host_argument(const HostList& list) {
  std::vector<std::string> items;
  items.reserve(list.hosts.size());
  for (const Host& host : list.hosts)
    items.push_back(host.slots == 0 ? host.name + ":*" : fmt::format("{}:{}", host.name, host.slots));
  return fmt::format("{}", fmt::join(items, ","));
}

bool has(const std::vector<std::string>& arguments, std::string_view wanted) {
  return std::find(arguments.begin(), arguments.end(), wanted) != arguments.end();
}

}  // namespace

LaunchSite inspect_site() {
  LaunchSite site;
  site.superuser = ::geteuid() == 0;
  site.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  site.single_copy = can_read_process_memory();
  return site;
}

int ranks_to_start(const MpirunOptions& options) {
  const int slots = known_ranks(options.hosts);
  if (slots > 0 && options.ranks > slots)
    throw Error(ErrorCode::kBadInput,
                fmt::format("ranks = {}: the {} hosts have {} slots in all; raise slots= or name more hosts",
                            options.ranks, options.hosts.hosts.size(), slots));
  return options.ranks > 0 ? options.ranks : slots;
}

std::vector<std::string> mpirun_command(const MpirunOptions& options, const LaunchSite& site) {
  const int ranks = ranks_to_start(options);
  const bool local = all_local(options.hosts);

  std::vector<std::string> argv{options.program};
  const auto add = [&argv](std::initializer_list<std::string> arguments) {
    argv.insert(argv.end(), arguments);
  };
  if (site.superuser) add({"--allow-run-as-root"});
  if (ranks > 0) add({"-np", std::to_string(ranks)});
  add({"--host", host_argument(options.hosts)});
  add({"--map-by", "slot", "--bind-to", "none"});
  if (local && ranks > site.cores) add({"--oversubscribe"});
  if (local && !site.single_copy) add({"--mca", "btl_vader_single_copy_mechanism", "none"});
  const bool agent_chosen = options.remote_agent_chosen || has(options.extra, "plm_rsh_agent");
  // ssh must neither ask for a password nor wait for minutes for a host that is gone.
  if (!local && !agent_chosen && !has(options.extra, "plm_rsh_args"))
    add({"--mca", "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10"});
  argv.insert(argv.end(), options.extra.begin(), options.extra.end());
  argv.insert(argv.end(), options.rank_command.begin(), options.rank_command.end());
  return argv;
}

std::string quoted(const std::vector<std::string>& argv) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:,=+@%").find(c) != std::string_view::npos;
  };
  std::vector<std::string> words;
  words.reserve(argv.size());
  for (const std::string& argument : argv) {
    if (!argument.empty() && std::all_of(argument.begin(), argument.end(), plain)) {
      words.push_back(argument);
      continue;
    }
    std::string word = "'";
    for (const char c : argument) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    words.push_back(word + "'");
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace commtune::api
