#include "tests/formats/every_key.h"

#include <utility>

#include "api/view/sample_rows.h"
#include "api/wire/order.h"
#include "executor/replay/run.h"
#include "executor/session/report.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "tests/store/every_row.h"

namespace commtune::tests {
namespace {

constexpr Collective kCollectives[] = {
    Collective::kRing,    Collective::kHalvingDoubling,  Collective::kRecursiveDoubling,
    Collective::kOneShot, Collective::kDoubleBinaryTree, Collective::kHierarchical,
    Collective::kLibrary};
constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
                                     Operation::kPushPull,  Operation::kPush,          Operation::kPull};
constexpr std::pair<const char*, DataType> kTypes[] = {
    {"float32", DataType::kFloat32}, {"float16", DataType::kFloat16}, {"bfloat16", DataType::kBfloat16}};

Profile profile_of(DataType type) {
  Profile profile;
  profile.model = "made-up";
  profile.batch = 8;
  profile.type = type;
  profile.origin = {"measured", "a processor", "nobody", "for tests of formats"};
  profile.layers = {
      {"conv", Seconds{0.001}, Seconds{0.002}, Seconds{0.0001}, {{"conv.weight", Bytes{400'000}}}, 1e6},
      {"relu", Seconds{0.0005}, Seconds{0.0005}, Seconds{0}, {}, 0},
      {"fc",
       Seconds{0.002},
       Seconds{0.004},
       Seconds{0},
       {{"fc.weight", Bytes{80'000}}, {"fc.bias", Bytes{400}}},
       2.5e5}};
  return profile;
}

/// Two messages: a fusion with a part of a tensor, and the rest of that. Nothing that can be left out is
/// said.
Plan plain_plan(const Road& road) {
  Plan plan;
  plan.method = "made-up";
  plan.model = "made-up";
  plan.profile = digest(made_up_profile());
  plan.workers = 4;
  plan.road = road;
  plan.messages = {
      {{{2, Bytes{0}, Bytes{400}}, {1, Bytes{0}, Bytes{80'000}}, {0, Bytes{200'000}, Bytes{200'000}}}},
      {{{0, Bytes{0}, Bytes{200'000}}}}};
  plan.priority = {1, -7};
  return plan;
}

/// The same with everything that can be said.
Plan full_plan(const Road& road) {
  Plan plan = plain_plan(road);
  plan.layout = layout_digest(made_up_profile());
  plan.release = Release::kBackward;
  plan.barrier = Barrier::kPerLayer;
  plan.credit = Bytes{std::uint64_t{1} << 40};
  if (!needs_one_order(road)) plan.order = Order::kPriority;
  if (may_be_decoupled(road) && has_two_stages(road))
    plan.sequence = {
        {1, Stage::kReduce}, {0, Stage::kReduce}, {0, Stage::kDistribute}, {1, Stage::kDistribute}};
  return plan;
}

std::map<std::string, Plan> every_plan() {
  std::map<std::string, Plan> plans;
  for (const Collective algorithm : kCollectives) {
    plans["plan-" + to_string(algorithm)] = plain_plan(AllReduce{algorithm});
    plans["plan-" + to_string(algorithm) + "-full"] = full_plan(AllReduce{algorithm});
  }
  const ParameterServer one{1, Placement::kColocated, Assignment::kEven, LocalSum::kNone, 0};
  plans["plan-servers"] = plain_plan(one);
  plans["plan-servers-full"] = full_plan(one);
  plans["plan-servers-dedicated"] =
      plain_plan(ParameterServer{3, Placement::kDedicated, Assignment::kHashed, LocalSum::kNone, 0});
  plans["plan-servers-first"] =
      plain_plan(ParameterServer{2, Placement::kColocated, Assignment::kEven, LocalSum::kNone, 1});
  plans["plan-servers-local-sum"] =
      plain_plan(ParameterServer{2, Placement::kColocated, Assignment::kEven, LocalSum::kFirst, 0});
  plans["plan-servers-local-sum-full"] =
      full_plan(ParameterServer{2, Placement::kColocated, Assignment::kHashed, LocalSum::kFirst, 3});
  return plans;
}

std::map<std::string, Profile> every_profile() {
  std::map<std::string, Profile> profiles;
  for (const auto& [name, type] : kTypes) profiles[std::string("profile-") + name] = profile_of(type);
  return profiles;
}

Fit plain_fit(double scale) {
  Fit fit;
  fit.curve = Curve(Seconds{1e-4 * scale}, SecondsPerByte{8e-9 * scale});
  fit.smallest = Bytes{4};
  fit.largest = Bytes{1 << 20};
  return fit;
}

/// Two pieces, with all that is known of a fit.
Fit full_fit(double scale) {
  Fit fit;
  fit.curve = Curve({{Bytes{0}, Seconds{1e-4 * scale}, SecondsPerByte{8e-9 * scale}},
                     {Bytes{65'536}, Seconds{3e-4 * scale}, SecondsPerByte{7e-9 * scale}}});
  fit.quality = {12, 0.999, 0.01, 0.03};
  fit.smallest = Bytes{4};
  fit.largest = Bytes{1 << 26};
  fit.covariance = {1e-12, -1e-18, 0, 0, -1e-18, 1e-22, 0, 0, 0, 0, 2e-12, -2e-18, 0, 0, -2e-18, 2e-22};
  fit.deviation = {0.05, 0.02};
  return fit;
}

Cluster bare_machines() {
  Cluster cluster;
  cluster.name = "bare";
  cluster.transport = "mpi";
  cluster.fingerprint = "0123456789abcdef";
  cluster.facts = {{"kernel", "6.1"}};
  cluster.hosts = {{"alpha", 2}, {"beta", 1}};
  return cluster;
}

Cluster fitted_machines() {
  Cluster cluster = bare_machines();
  const probes::ClusterFacts facts = made_up_facts();
  cluster.name = facts.name;
  cluster.transport = facts.transport;
  cluster.fingerprint = probes::fingerprint(facts);
  cluster.facts = facts.facts;
  cluster.hosts = {{"alpha", 2, {1.5, 1.25, 1.125}}, {"beta", 2}};
  cluster.links[LinkClass::kIntraHost] = {plain_fit(0.1), {}, {}};
  cluster.links[LinkClass::kInterHost] = {full_fit(1), full_fit(0.5), full_fit(0.75)};
  double scale = 1;
  for (const Operation operation : kOperations) {
    const bool of_servers =
        operation == Operation::kPushPull || operation == Operation::kPush || operation == Operation::kPull;
    const Road road =
        of_servers ? Road(ParameterServer{2, Placement::kColocated, Assignment::kEven, LocalSum::kFirst, 1})
                   : Road(AllReduce{Collective::kRing});
    scale *= 1.25;
    cluster.operations.push_back({road, operation, 4, full_fit(scale), plain_fit(scale)});
  }
  cluster.operations.push_back({AllReduce{Collective::kLibrary}, Operation::kAllReduce, 4, plain_fit(2), {}});
  cluster.reduce_seconds_per_byte = {2e-11, 1e-12};
  cluster.copy_seconds_per_byte = {2.5e-11, 1e-12};
  cluster.interference = {0.01, 0.002};
  cluster.contention = {0.03, 0.004};
  cluster.head_of_line_seconds = {0.005, 0.001};
  cluster.connection_head_of_line_seconds = {0.0025, 0.0005};
  cluster.jitter_seconds = {1e-4, 1e-5};
  cluster.formula_deviation = {0.25, 0.125};
  cluster.plan_deviation = 0.0625;
  return cluster;
}

RunReport report() {
  RankReport rank{0,     "alpha", true,    {0.010, 0.011}, {0.001, 0.002}, 0.5,  0.25,
                  0.125, 2,       1 << 20, 4096,           8192,           1e-6, "rank0.json"};
  RankReport server = rank;
  server.rank = 1;
  server.worker = false;
  return {"made-up",
          "made-up",
          "0123456789abcdef",
          "fedcba9876543210",
          "tcp",
          1,
          65'536,
          {0.010, 0.011},
          0.0105,
          0.011,
          0.0005,
          0.0015,
          {1, 3, 90},
          {{0.001, 0.002, 0.003, 0.004, 0.005}, {0.0015, 0.0025, 0.0035, 0.0045, 0.0055}},
          {rank, server}};
}

probes::ProbeOptions probe_options() {
  probes::ProbeOptions options;
  options.budget = Seconds{30};
  options.algorithms = {std::begin(kCollectives), std::end(kCollectives)};
  options.servers = {{1, Placement::kColocated, Assignment::kEven, LocalSum::kNone, 0},
                     {2, Placement::kDedicated, Assignment::kHashed, LocalSum::kNone, 0}};
  options.groups = {2};
  options.settings = {{"btl", "tcp"}};
  options.cluster_name = "made-up";
  return options;
}

RunOptions run_options() {
  RunOptions options;
  options.chunk = Bytes{65'536};
  options.trace_directory = "traces";
  return options;
}

}  // namespace

Profile made_up_profile() { return profile_of(DataType::kFloat32); }

probes::ClusterFacts made_up_facts() {
  return {"made-up",
          "tcp",
          {"alpha", "alpha", "beta", "beta"},
          {{"host.alpha.cpu", "made up, 2 processors"},
           {"host.alpha.interfaces", "eth0 mtu 1500"},
           {"release.alpha.open_mpi", "4.1.4"},
           {"wire_revision", "2"}}};
}

std::vector<probes::ProbeSample> every_sample() {
  using probes::Subject;
  const Road ring = AllReduce{Collective::kRing};
  const Road servers = ParameterServer{2, Placement::kColocated, Assignment::kEven, LocalSum::kNone, 0};
  const std::vector<probes::Quantity> quantities = {
      {Subject::kMessage, {}, Operation::kAllReduce, 0, 0, 3, 1},
      {Subject::kExchange, {}, Operation::kAllReduce, 0, 1, 2, 8},
      {Subject::kOperation, ring, Operation::kReduceScatter, 4, -1, -1, 1},
      {Subject::kOperation, servers, Operation::kPushPull, 4, -1, -1, 4},
      {Subject::kSum, {}, Operation::kAllReduce, 0, 0, -1, 1},
      {Subject::kCopy, {}, Operation::kAllReduce, 0, 1, -1, 1},
      {Subject::kStep, {}, Operation::kAllReduce, 0, -1, -1, 0},
      {Subject::kJitter, {}, Operation::kAllReduce, 0, -1, -1, 1},
      {Subject::kHeadOfLine, servers, Operation::kPush, 4, -1, -1, 4},
      {Subject::kPlan, ring, Operation::kAllReduce, 4, -1, -1, 1}};
  std::vector<probes::ProbeSample> samples;
  for (const probes::Quantity& quantity : quantities) {
    probes::ProbeSample sample{
        quantity, {Bytes{4096}, Seconds{1.5e-3}, Seconds{2e-5}, 3}, {1e-3, 1.5e-3, 2e-3}, {}};
    if (quantity.subject == Subject::kPlan)
      sample.costs = {
          "0123456789abcdef", Seconds{1.25e-3}, {1.2, 1.2, {0.05, 0.05}}, {1.2, 1.2, {0.05, 0.05}}};
    samples.push_back(sample);
  }
  return samples;
}

std::map<std::string, nlohmann::json> every_document() {
  std::map<std::string, nlohmann::json> documents;
  for (const auto& [name, plan] : every_plan()) documents[name] = to_json(plan);
  for (const auto& [name, profile] : every_profile()) documents[name] = to_json(profile);
  documents["cluster-bare"] = to_json(bare_machines());
  documents["cluster-fitted"] = to_json(fitted_machines());
  documents["run-complete"] = to_json(report());
  nlohmann::json samples = nlohmann::json::array();
  for (const probes::ProbeSample& sample : every_sample()) samples.push_back(to_json(sample));
  documents["samples-of-each-subject"] = std::move(samples);
  documents["settings-probe"] = api::settings_of(probe_options());
  documents["settings-run"] = api::settings_of(run_options());
  return documents;
}

nlohmann::json every_digest() {
  nlohmann::json digests = {{"fingerprint", probes::fingerprint(made_up_facts())}};
  for (const auto& [name, plan] : every_plan()) digests[name] = digest(plan);
  for (const auto& [name, profile] : every_profile()) {
    digests[name] = digest(profile);
    digests["layout of " + name] = layout_digest(profile);
  }
  return digests;
}

void make_database(const std::filesystem::path& path) {
  EveryRow rows{fitted_machines(), made_up_profile(), {}, {}, to_json(report()).at("messages")};
  for (const auto& [name, plan] : every_plan()) rows.plans.push_back(plan);
  for (const probes::ProbeSample& sample : every_sample()) rows.samples.push_back(api::to_row(sample));
  make_every_row(path, rows);
}

}  // namespace commtune::tests
