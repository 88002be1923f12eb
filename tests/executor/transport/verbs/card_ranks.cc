#include "tests/executor/transport/verbs/card_ranks.h"

#include <set>

#include "executor/transport/verbs/device.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::tests {

const std::vector<std::string>& cards() {
  static const std::vector<std::string> names = [] {
    std::set<std::string> found;
    for (const verbs::Gid& gid : verbs::list_gids())
      if (verbs::score(gid) > 0) found.insert(gid.device);
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return names;
}

VerbsOptions options_of(const Bootstrap& bootstrap, int connections) {
  VerbsOptions options;
  options.gid.device = cards()[static_cast<std::size_t>(bootstrap.peers().rank) % cards().size()];
  options.connect_timeout = Seconds{120};
  options.connections = connections;
  return options;
}

std::unique_ptr<VerbsTransport> connect(const std::shared_ptr<Bootstrap>& bootstrap, int connections) {
  auto transport = make_verbs_transport(bootstrap, options_of(*bootstrap, connections));
  transport->limit_messages(kConformanceLimits);
  return transport;
}

void on_verbs_ranks(int n, const std::function<void(VerbsTransport&)>& body, int connections) {
  on_bootstraps(n, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    const auto transport = connect(bootstrap, connections);
    body(*transport);
    synchronize(*transport);
  });
}

}  // namespace commtune::tests
