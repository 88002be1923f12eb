// A probe without the `tune` command around it, for mpirun: one process is one rank. Rank 0 writes its
// samples, one JSON object a line, and at the end the cluster. The bench and the tests on emulated clusters
// use it.

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "executor/transport/mpi/mpi.h"
#include "executor/transport/tcp/tcp.h"
#include "perfmodel/base/error.h"
#include "probes/probe.h"
#include "probes/tools/comparison.h"

namespace {

using namespace commtune;

volatile std::sig_atomic_t interrupted = 0;

class Writer : public probes::EventSink {
 public:
  explicit Writer(const std::string& path, bool verbose) : out_(path), verbose_(verbose) {}
  void on_progress(const probes::ProbeProgress& progress) override {
    if (verbose_) {
      std::cerr << format_time(progress.left) << " left: " << progress.what << "\n";
    }
  }
  void on_sample(const probes::ProbeSample& sample) override {
    const Seconds at = std::chrono::steady_clock::now() - began_;
    out_ << nlohmann::json{{"sample", probes::to_json(sample)}, {"at_seconds", at.count()}} << std::endl;
  }
  bool stop_requested() override { return interrupted != 0; }
  void add(const probes::ToolResult& tool) {
    out_ << nlohmann::json{{"tool", probes::to_json(tool)}} << std::endl;
  }
  void finish(const probes::ProbeResult& result) {
    out_ << nlohmann::json{{"cluster", to_json(result.cluster)},
                           {"links", probes::to_json(result.links)},
                           {"end", static_cast<int>(result.end)},
                           {"missing", result.would_measure},
                           {"notes", result.notes},
                           {"elapsed_seconds", result.elapsed.count()},
                           {"traffic_bytes", result.traffic.count}}
         << std::endl;
  }

 private:
  std::ofstream out_;
  bool verbose_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::vector<probes::ProbeSample> read_samples(const std::string& path) {
  std::vector<probes::ProbeSample> samples;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json.contains("sample")) samples.push_back(probes::probe_sample_from_json(json["sample"]));
  }
  return samples;
}

int run(int argc, char** argv) {
  CLI::App app{"Probes the ranks that mpirun started."};
  std::string out = "/dev/stdout", budget, last = "64M", timeout = "10s", network, resume;
  bool tcp = false, verbose = false, compare = false;
  double width = 0.02, factor = 4;
  int iterations = 5;
  std::string first = "4", traffic;
  app.add_option("--out", out, "file for samples and the cluster");
  app.add_option("--budget", budget, "wall time");
  app.add_option("-b", first, "smallest size");
  app.add_option("-e", last, "largest size");
  app.add_option("-f", factor, "ratio of neighbouring sizes, before refinement");
  app.add_option("-n", iterations, "repetitions of a size at least");
  app.add_option("--traffic", traffic, "most bytes that any rank may send");
  app.add_option("--width", width, "relative half width of the median");
  app.add_option("--timeout", timeout, "for silent ranks");
  app.add_option("--resume", resume, "file of an earlier probe's samples");
  app.add_option("--network", network, "network of the TCP transport");
  app.add_flag("--tcp", tcp, "TCP sockets instead of Open MPI");
  app.add_flag("--verbose", verbose, "progress to standard error");
  app.add_flag("--compare", compare, "iperf3 and perftest beside it");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::signal(SIGTERM, [](int) { interrupted = 1; });

  std::unique_ptr<Transport> transport;
  try {
    if (tcp) {
      TcpOptions tcp_options;
      tcp_options.network = network;
      transport = make_tcp_transport(join_mpi_job(), tcp_options);
    } else {
      transport = make_mpi_transport();
    }
    probes::ProbeOptions options;
    if (!budget.empty()) options.budget = parse_duration(budget);
    options.first = parse_size(first);
    options.last = parse_size(last);
    options.width = width;
    options.factor = factor;
    options.iterations = iterations;
    if (!traffic.empty()) options.traffic = parse_size(traffic);
    options.timeout = parse_duration(timeout);
    if (!resume.empty()) options.already = read_samples(resume);
    Writer writer(transport->peers().rank == 0 ? out : "/dev/null", verbose);
    const probes::ProbeResult result = probes::probe(*transport, options, writer);
    if (compare) {
      for (const probes::ToolResult& tool : probes::compare_with_tools(*transport)) writer.add(tool);
    }
    if (transport->peers().rank == 0) writer.finish(result);
    return 0;
  } catch (const Error& error) {
    std::cerr << "probe: " << error.what() << std::endl;
    if (transport) transport->abort(error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {
    std::fputs("probe: failed\n", stderr);
    return 1;
  }
}
