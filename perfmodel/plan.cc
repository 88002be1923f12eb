#include "perfmodel/plan.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "perfmodel/digest.h"
#include "perfmodel/error.h"
#include "perfmodel/json_reader.h"
#include "perfmodel/overloaded.h"
#include "perfmodel/road_json.h"
#include "perfmodel/tensor_limits.h"

namespace commtune {

namespace {

// Bounds that keep every sum within 64 bits: 2^22 pieces of at most kLargestTensor bytes.
constexpr std::uint64_t kMostProcesses = 1'000'000;
constexpr std::size_t kMostPieces = std::size_t{1} << 22;
constexpr std::uint64_t kLargestCredit = std::uint64_t{1} << 62;

constexpr std::string_view kPlanFormat = "commtune/plan/1";
constexpr std::pair<std::string_view, Collective> kCollectives[] = {
    {"ring", Collective::kRing},
    {"halving-doubling", Collective::kHalvingDoubling},
    {"recursive-doubling", Collective::kRecursiveDoubling},
    {"one-shot", Collective::kOneShot},
    {"double-binary-tree", Collective::kDoubleBinaryTree},
    {"hierarchical", Collective::kHierarchical},
    {"library", Collective::kLibrary}};
constexpr std::pair<std::string_view, Placement> kPlacements[] = {{"colocated", Placement::kColocated},
                                                                  {"dedicated", Placement::kDedicated}};
constexpr std::pair<std::string_view, Assignment> kAssignments[] = {{"even", Assignment::kEven},
                                                                    {"hashed", Assignment::kHashed}};
constexpr std::pair<std::string_view, LocalSum> kLocalSums[] = {{"none", LocalSum::kNone},
                                                                {"first", LocalSum::kFirst}};
constexpr std::pair<std::string_view, Release> kReleases[] = {{"gradient", Release::kGradient},
                                                              {"backward", Release::kBackward}};
constexpr std::pair<std::string_view, Order> kOrders[] = {{"list", Order::kList},
                                                          {"priority", Order::kPriority}};
constexpr std::pair<std::string_view, Barrier> kBarriers[] = {{"full", Barrier::kFull},
                                                              {"per-layer", Barrier::kPerLayer}};
constexpr std::pair<std::string_view, Stage> kStages[] = {{"reduce", Stage::kReduce},
                                                          {"distribute", Stage::kDistribute}};

[[noreturn]] void reject(const std::string& where, const std::string& rule) {
  throw Error(ErrorCode::kBadInput, where + ": " + rule);
}

std::string at(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

// --- check ----------------------------------------------------------------------------------------------

/// By its layout, so that a profile that was timed again suits too.
void check_profile(const Plan& plan, const Profile& profile) {
  if (plan.layout.empty()) {
    const std::string given = digest(profile);
    if (plan.profile == given) return;
    reject("profile", "the plan was made for a profile with digest " + plan.profile + ", this one (" +
                          profile.model + ") has " + given);
  }
  const std::string given = layout_digest(profile);
  if (plan.layout == given) return;
  reject("layout", "the plan carries tensors with layout " + plan.layout + ", this profile (" +
                       profile.model + ") has " + given +
                       ": their names, sizes, types and order must be the same");
}

void check_road(const Plan& plan) {
  if (plan.workers < 1) {
    reject("workers = " + std::to_string(plan.workers), "must be at least 1");
  }
  const auto check_servers = [&](const ParameterServer& road) {
    const std::string where = "road.servers = " + std::to_string(road.servers);
    if (road.servers < 1) {
      reject(where, "must be at least 1");
    }
    if (road.placement == Placement::kColocated && road.servers > plan.workers) {
      reject(where, "colocated servers live in workers, and there are only " + std::to_string(plan.workers));
    }
    const bool dedicated = road.placement == Placement::kDedicated;
    if (road.first < 0 || road.first >= (dedicated ? 1 : plan.workers)) {
      reject("road.first = " + std::to_string(road.first),
             dedicated ? "dedicated servers are no workers: leave it out"
                       : "must be a worker, 0 to " + std::to_string(plan.workers - 1));
    }
  };
  match(
      plan.road, [](const AllToAll&) {}, check_servers);
  if (plan.order != Order::kList && needs_one_order(plan.road)) {
    reject("order = priority", describe(plan.road) + " needs the same order on every rank: list");
  }
}

/// A piece with where the plan has it, for errors.
struct PlacedPiece {
  Piece piece;
  std::size_t message = 0, index = 0;

  std::string where() const { return at("messages", message) + "." + at("pieces", index); }
};

void check_piece(const PlacedPiece& placed, const std::vector<TensorRef>& tensors, Bytes element) {
  const Piece& piece = placed.piece;
  if (piece.tensor >= tensors.size()) {
    reject(placed.where(), "tensor " + std::to_string(piece.tensor) + " does not exist: the profile has " +
                               std::to_string(tensors.size()));
  }
  const std::uint64_t size = tensors[piece.tensor].bytes.count;
  if (piece.length.count == 0) {
    reject(placed.where(), "length is 0 B: must be at least one element");
  }
  if (piece.offset.count > size || piece.length.count > size - piece.offset.count) {
    reject(placed.where(), std::to_string(piece.length.count) + " B from " +
                               std::to_string(piece.offset.count) + ": tensor " +
                               std::to_string(piece.tensor) + " ends at " + std::to_string(size));
  }
  if (piece.offset.count % element.count != 0 || piece.length.count % element.count != 0) {
    reject(placed.where(), std::to_string(piece.length.count) + " B from " +
                               std::to_string(piece.offset.count) + ": must be whole elements of " +
                               std::to_string(element.count) + " B");
  }
}

std::vector<PlacedPiece> placed_pieces(const Plan& plan) {
  std::vector<PlacedPiece> placed;
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    if (plan.messages[m].pieces.empty()) {
      reject(at("messages", m), "has no pieces: must have at least one");
    }
    for (std::size_t p = 0; p < plan.messages[m].pieces.size(); ++p) {
      placed.push_back({plan.messages[m].pieces[p], m, p});
    }
  }
  return placed;
}

void check_coverage(const Plan& plan, const Profile& profile) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  std::vector<PlacedPiece> placed = placed_pieces(plan);
  for (const PlacedPiece& p : placed) {
    check_piece(p, tensors, element_size(profile.type));
  }
  std::sort(placed.begin(), placed.end(), [](const PlacedPiece& a, const PlacedPiece& b) {
    return std::pair(a.piece.tensor, a.piece.offset) < std::pair(b.piece.tensor, b.piece.offset);
  });
  auto next = placed.begin();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    Bytes covered;
    for (; next != placed.end() && next->piece.tensor == t; ++next) {
      if (next->piece.offset < covered) {
        reject(next->where(), "tensor " + std::to_string(t) + " travels twice from byte " +
                                  std::to_string(next->piece.offset.count));
      }
      if (next->piece.offset > covered) {
        break;
      }
      covered += next->piece.length;
    }
    if (covered < tensors[t].bytes) {
      reject("messages", "no message carries tensor " + std::to_string(t) + " from byte " +
                             std::to_string(covered.count) + " of " + std::to_string(tensors[t].bytes.count));
    }
  }
}

void check_priorities(const Plan& plan) {
  if (plan.priority.size() != plan.messages.size()) {
    reject("priority", std::to_string(plan.priority.size()) + " values for " +
                           std::to_string(plan.messages.size()) + " messages: must be one per message");
  }
  std::vector<std::int32_t> sorted = plan.priority;
  std::sort(sorted.begin(), sorted.end());
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) {
    reject("priority", "value " + std::to_string(*twin) + " appears twice: must be unique");
  }
}

void check_sequence(const Plan& plan) {
  if (plan.sequence.empty()) {
    return;
  }
  if (!may_be_decoupled(plan.road)) {
    reject("sequence", describe(plan.road) + " cannot be decoupled: needs an all-to-all road of two stages");
  }
  std::vector<std::uint8_t> reduced(plan.messages.size(), 0), distributed(plan.messages.size(), 0);
  for (std::size_t i = 0; i < plan.sequence.size(); ++i) {
    const Step& step = plan.sequence[i];
    if (step.message >= plan.messages.size()) {
      reject(at("sequence", i), "message " + std::to_string(step.message) + " does not exist: the plan has " +
                                    std::to_string(plan.messages.size()));
    }
    const bool is_distribute = step.stage == Stage::kDistribute;
    if (is_distribute && reduced[step.message] == 0) {
      reject(at("sequence", i), "distributes message " + std::to_string(step.message) + " before its reduce");
    }
    std::uint8_t& done = is_distribute ? distributed[step.message] : reduced[step.message];
    if (done != 0) {
      reject(at("sequence", i), enum_name(step.stage, kStages) + " of message " +
                                    std::to_string(step.message) + " appears twice");
    }
    done = 1;
  }
  const auto missing = std::find(distributed.begin(), distributed.end(), std::uint8_t{0});
  if (missing != distributed.end()) {
    reject("sequence", "lacks a stage of message " + std::to_string(missing - distributed.begin()));
  }
}

// --- JSON -----------------------------------------------------------------------------------------------

Piece read_piece(const JsonPlace& place) {
  place.expect_keys({"tensor", "offset_bytes", "length_bytes"});
  const JsonPlace tensor = place["tensor"];
  const JsonPlace offset = place["offset_bytes"];
  const JsonPlace length = place["length_bytes"];
  return {static_cast<TensorId>(tensor.integer(0, kMostTensors - 1)),
          Bytes{offset.integer(0, kLargestTensor)}, Bytes{length.integer(1, kLargestTensor)}};
}

std::vector<Message> read_messages(const JsonPlace& place) {
  const std::size_t count = place.size(0, kMostPieces);
  std::vector<Message> messages(count);
  std::size_t total = 0;
  for (std::size_t m = 0; m < count; ++m) {
    const JsonPlace message = place[m];
    message.expect_keys({"pieces"});
    const JsonPlace pieces = message["pieces"];
    const std::size_t size = pieces.size(1, kMostPieces);
    total += size;
    if (total > kMostPieces) {
      pieces.fail_because("more than " + std::to_string(kMostPieces) + " pieces in the plan");
    }
    messages[m].pieces.reserve(size);
    for (std::size_t p = 0; p < size; ++p) {
      const JsonPlace piece = pieces[p];
      messages[m].pieces.push_back(read_piece(piece));
    }
  }
  return messages;
}

std::vector<std::int32_t> read_priority(const JsonPlace& place) {
  using Limits = std::numeric_limits<std::int32_t>;
  const std::size_t count = place.size(0, kMostPieces);
  std::vector<std::int32_t> priority(count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace value = place[i];
    priority[i] = static_cast<std::int32_t>(value.signed_integer(Limits::min(), Limits::max()));
  }
  return priority;
}

std::vector<Step> read_sequence(const JsonPlace& place, std::size_t messages) {
  const std::size_t count = place.size(0, 2 * messages);
  std::vector<Step> sequence(count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace step = place[i];
    step.expect_keys({"message", "stage"});
    const JsonPlace message = step["message"];
    const JsonPlace stage = step["stage"];
    sequence[i] = {static_cast<std::uint32_t>(message.integer(0, messages == 0 ? 0 : messages - 1)),
                   read_enum(stage, kStages)};
  }
  return sequence;
}

Road read_parameter_server(const JsonPlace& place) {
  place.expect_keys({"kind", "servers", "placement", "assignment", "local_sum", "first"});
  const JsonPlace servers = place["servers"];
  const JsonPlace placement = place["placement"];
  const JsonPlace assignment = place["assignment"];
  const auto local_sum = place.find("local_sum");
  const auto first = place.find("first");
  return ParameterServer{static_cast<int>(servers.integer(1, kMostProcesses)),
                         read_enum(placement, kPlacements), read_enum(assignment, kAssignments),
                         local_sum ? read_enum(*local_sum, kLocalSums) : LocalSum::kNone,
                         first ? static_cast<int>(first->integer(0, kMostProcesses - 1)) : 0};
}

void add_to(Digest& digest, const Road& road) {
  const auto add_all_to_all = [&](const AllToAll& r) {
    digest.add("all-to-all").add(to_string(r.algorithm));
  };
  const auto add_servers = [&](const ParameterServer& r) {
    digest.add("parameter-server").add(r.servers).add(to_string(r.placement));
    digest.add(enum_name(r.assignment, kAssignments));
    // Plans without these keep the digest that they had before there were any.
    if (r.local_sum != LocalSum::kNone) digest.add("local-sum").add(enum_name(r.local_sum, kLocalSums));
    if (r.first != 0) digest.add("first").add(r.first);
  };
  match(road, add_all_to_all, add_servers);
}

bool has_two_stages(Collective algorithm) {
  switch (algorithm) {
    case Collective::kRing:
    case Collective::kHalvingDoubling:
    case Collective::kDoubleBinaryTree:
    case Collective::kHierarchical:
      return true;
    case Collective::kRecursiveDoubling:
    case Collective::kOneShot:
    case Collective::kLibrary:
      return false;
  }
  std::abort();
}

}  // namespace

Bytes message_bytes(const Message& message) {
  Bytes total;
  for (const Piece& piece : message.pieces) {
    total += piece.length;
  }
  return total;
}

bool is_one_stretch(const Message& message, const std::vector<TensorRef>& tensors) {
  const auto follows = [&](const Piece& before, const Piece& piece) {
    const Bytes end = before.offset + before.length;
    if (piece.tensor == before.tensor) return piece.offset == end;
    return piece.tensor + 1 == before.tensor && piece.offset.count == 0 &&
           end == tensors[before.tensor].bytes;
  };
  for (std::size_t i = 1; i < message.pieces.size(); ++i) {
    if (!follows(message.pieces[i - 1], message.pieces[i])) return false;
  }
  return true;
}

bool needs_one_order(const Road& road) {
  return match(
      road, [](const AllToAll&) { return true; },
      [](const ParameterServer& servers) { return servers.local_sum == LocalSum::kFirst; });
}

bool has_two_stages(const Road& road) {
  return match(
      road, [](const AllToAll& all_to_all) { return has_two_stages(all_to_all.algorithm); },
      [](const ParameterServer&) { return true; });
}

bool may_be_decoupled(const Road& road) {
  return match(
      road, [&](const AllToAll&) { return has_two_stages(road); },
      [](const ParameterServer&) { return false; });
}

bool goes_through_servers(const Road& road) {
  return match(
      road, [](const AllToAll&) { return false; }, [](const ParameterServer&) { return true; });
}

int ranks_of(const Plan& plan) {
  const int apart = match(
      plan.road, [](const AllToAll&) { return 0; },
      [](const ParameterServer& servers) {
        return servers.placement == Placement::kDedicated ? servers.servers : 0;
      });
  return plan.workers + apart;
}

void check(const Plan& plan, const Profile& profile) {
  check_profile(plan, profile);
  check_road(plan);
  check_coverage(plan, profile);
  check_priorities(plan);
  check_sequence(plan);
}

Road road_from_json(const JsonPlace& place) {
  const JsonPlace kind = place["kind"];
  const std::string name = kind.name();
  if (name == "parameter-server") {
    return read_parameter_server(place);
  }
  if (name != "all-to-all") {
    kind.fail(R"(one of "all-to-all", "parameter-server")");
  }
  place.expect_keys({"kind", "algorithm"});
  const JsonPlace algorithm = place["algorithm"];
  return AllToAll{read_enum(algorithm, kCollectives)};
}

nlohmann::json to_json(const Road& road) {
  const auto all_to_all = [](const AllToAll& r) -> nlohmann::json {
    return {{"kind", "all-to-all"}, {"algorithm", to_string(r.algorithm)}};
  };
  const auto servers = [](const ParameterServer& r) -> nlohmann::json {
    nlohmann::json json = {{"kind", "parameter-server"},
                           {"servers", r.servers},
                           {"placement", to_string(r.placement)},
                           {"assignment", enum_name(r.assignment, kAssignments)}};
    if (r.local_sum != LocalSum::kNone) json["local_sum"] = enum_name(r.local_sum, kLocalSums);
    if (r.first != 0) json["first"] = r.first;
    return json;
  };
  return match(road, all_to_all, servers);
}

Plan plan_from_json(const nlohmann::json& json) {
  const JsonPlace document(json);
  document.object();
  document.expect_format(kPlanFormat);
  document.expect_keys({"format", "method", "model", "profile", "layout", "workers", "road", "release",
                        "order", "barrier", "credit_bytes", "messages", "priority", "sequence"});
  Plan plan;
  const JsonPlace method = document["method"];
  plan.method = method.text();
  const JsonPlace model = document["model"];
  plan.model = model.text();
  const JsonPlace profile = document["profile"];
  plan.profile = profile.text();
  if (const auto layout = document.find("layout")) {
    plan.layout = layout->name();
  }
  const JsonPlace workers = document["workers"];
  plan.workers = static_cast<int>(workers.integer(1, kMostProcesses));
  const JsonPlace road = document["road"];
  plan.road = road_from_json(road);
  const JsonPlace release = document["release"];
  plan.release = read_enum(release, kReleases);
  const JsonPlace order = document["order"];
  plan.order = read_enum(order, kOrders);
  const JsonPlace barrier = document["barrier"];
  plan.barrier = read_enum(barrier, kBarriers);
  const JsonPlace credit = document["credit_bytes"];
  plan.credit = Bytes{credit.integer(0, kLargestCredit)};
  const JsonPlace messages = document["messages"];
  plan.messages = read_messages(messages);
  const JsonPlace priority = document["priority"];
  plan.priority = read_priority(priority);
  if (const auto sequence = document.find("sequence")) {
    plan.sequence = read_sequence(*sequence, plan.messages.size());
  }
  return plan;
}

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json messages = nlohmann::json::array();
  for (const Message& message : plan.messages) {
    nlohmann::json pieces = nlohmann::json::array();
    for (const Piece& piece : message.pieces) {
      pieces.push_back({{"tensor", piece.tensor},
                        {"offset_bytes", piece.offset.count},
                        {"length_bytes", piece.length.count}});
    }
    messages.push_back({{"pieces", std::move(pieces)}});
  }
  nlohmann::json sequence = nlohmann::json::array();
  for (const Step& step : plan.sequence) {
    sequence.push_back({{"message", step.message}, {"stage", enum_name(step.stage, kStages)}});
  }
  nlohmann::json json = {{"format", kPlanFormat},
                         {"method", plan.method},
                         {"model", plan.model},
                         {"profile", plan.profile},
                         {"workers", plan.workers},
                         {"road", to_json(plan.road)},
                         {"release", enum_name(plan.release, kReleases)},
                         {"order", enum_name(plan.order, kOrders)},
                         {"barrier", enum_name(plan.barrier, kBarriers)},
                         {"credit_bytes", plan.credit.count},
                         {"messages", std::move(messages)},
                         {"priority", plan.priority},
                         {"sequence", std::move(sequence)}};
  if (!plan.layout.empty()) json["layout"] = plan.layout;
  return json;
}

std::string digest(const Plan& plan) {
  Digest digest;
  digest.add(kPlanFormat).add(plan.model).add(plan.profile).add(plan.workers);
  add_to(digest, plan.road);
  digest.add(enum_name(plan.release, kReleases)).add(enum_name(plan.order, kOrders));
  digest.add(enum_name(plan.barrier, kBarriers)).add(plan.credit.count);
  digest.add(static_cast<std::uint64_t>(plan.messages.size()));
  for (const Message& message : plan.messages) {
    digest.add(static_cast<std::uint64_t>(message.pieces.size()));
    for (const Piece& piece : message.pieces) {
      digest.add(piece.tensor).add(piece.offset.count).add(piece.length.count);
    }
  }
  digest.add(static_cast<std::uint64_t>(plan.priority.size()));
  for (const std::int32_t priority : plan.priority) {
    digest.add(priority);
  }
  digest.add(static_cast<std::uint64_t>(plan.sequence.size()));
  for (const Step& step : plan.sequence) {
    digest.add(step.message).add(enum_name(step.stage, kStages));
  }
  // Plans without a layout keep the digest that they had before there was one.
  if (!plan.layout.empty()) digest.add("layout").add(plan.layout);
  return digest.hex();
}

std::string to_string(Collective algorithm) { return enum_name(algorithm, kCollectives); }

std::string to_string(Placement placement) { return enum_name(placement, kPlacements); }

std::string describe(const Road& road) {
  const auto all_to_all = [](const AllToAll& r) { return "all-to-all " + to_string(r.algorithm); };
  const auto servers = [](const ParameterServer& r) {
    return std::to_string(r.servers) + " " + to_string(r.placement) +
           (r.servers == 1 ? " server" : " servers") +
           (r.first > 0 ? " from worker " + std::to_string(r.first) + " on" : "") +
           (r.assignment == Assignment::kHashed ? ", hashed" : "") +
           (r.local_sum == LocalSum::kFirst ? ", local sum first" : "");
  };
  return match(road, all_to_all, servers);
}

}  // namespace commtune
