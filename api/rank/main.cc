// What mpirun starts on every host. Rank 0 reads the order from its standard input, all ranks carry it out,
// rank 0 reports on its standard output (api/wire). Takes no arguments and reads no settings: everything is
// in the order, and in the lines that follow a session's.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <string>

#include "api/error_status.h"
#include "api/rank/carry_out.h"
#include "api/rank/reporter.h"
#include "api/rank/share.h"
#include "api/rank/start_limit.h"
#include "api/version.h"
#include "api/wire/order_reader.h"
#include "executor/transport/mpi/mpi.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

volatile std::sig_atomic_t g_stop = 0;

void on_stop(int /*number*/) { g_stop = 1; }

bool stop_requested() { return g_stop != 0; }

/// Far longer than any start takes.
constexpr std::chrono::minutes kStartLimit{5};

TransportOptions options_of(const ProbeOrder& order) {
  return {.subnet = order.subnet, .pace = 0, .own = order.network_options};
}
TransportOptions options_of(const RunOrder& order) {
  return {.subnet = order.subnet, .pace = order.pace, .own = order.network_options};
}
TransportOptions options_of(const SessionOrder& order) {
  return {.subnet = order.subnet, .pace = order.pace, .own = order.network_options};
}

std::unique_ptr<Transport> connect(std::shared_ptr<Bootstrap> job, const Order& order) {
  const Deadline until = Clock::now() + kStartLimit;
  return std::visit(
      [&](const auto& one) { return make_transport(one.network, std::move(job), options_of(one), until); },
      order);
}

/// Ends this process and with it the job: a failure on one rank is a failure of all.
[[noreturn]] void give_up(const std::unique_ptr<Transport>& transport, const Reporter& reporter,
                          const Failed& failure) {
  reporter.report_failure(failure);
  if (transport) transport->abort(failure.message);
  std::_Exit(error_status(failure.code).exit_status);
}

/// All ranks, connected, with their order.
Order start(std::unique_ptr<Transport>& transport, Reporter& reporter, OrderReader& orders) {
  const StartLimit limit(kStartLimit);
  std::shared_ptr<MpiJob> job = join_mpi_job();
  transport = make_mpi_transport(job);
  reporter.set_rank(transport->peers().rank);
  reporter.report(Started{std::string(kVersion), transport->peers().hosts});
  std::string text;
  if (transport->peers().rank == 0) text = orders.next().value_or("");
  share(*transport, text);
  Order order = order_from_json(parse_json(text, "order"));
  transport.reset();  // a rank that cannot connect says so and leaves the job, and ends it for nobody else
  transport = connect(std::move(job), order);
  return order;
}

void serve(std::unique_ptr<Transport>& transport, Reporter& reporter) {
  OrderReader orders(STDIN_FILENO, stop_requested);
  const Order order = start(transport, reporter, orders);
  reporter.report(Finished{carry_out(order, *transport, reporter, orders, stop_requested)});
}

int run() {
  std::signal(SIGUSR1, on_stop);
  std::unique_ptr<Transport> transport;
  Reporter reporter;
  try {
    serve(transport, reporter);
    transport.reset();
  } catch (const Error& error) {
    give_up(transport, reporter, {error.code(), error.what()});
  } catch (const std::exception& error) {
    give_up(transport, reporter, {ErrorCode::kUnavailable, fmt::format("internal error: {}", error.what())});
  }
  return 0;
}

}  // namespace
}  // namespace commtune::api

int main() { return commtune::api::run(); }
