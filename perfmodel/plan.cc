#include "perfmodel/plan.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/field_text.h"
#include "perfmodel/base/fields.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/common_parts.h"
#include "perfmodel/plan_text.h"
#include "perfmodel/road_fields.h"
#include "perfmodel/road_json.h"
#include "perfmodel/tensor_limits.h"

namespace commtune {

namespace {

// Bounds that keep every sum within 64 bits: 2^22 pieces of at most kLargestTensor bytes.
constexpr std::size_t kMostPieces = std::size_t{1} << 22;
constexpr std::uint64_t kLargestCredit = std::uint64_t{1} << 62;
constexpr double kFastestPace = 1e15;

constexpr std::string_view kPlanFormat = "commtune/plan/1";
constexpr std::pair<std::string_view, Release> kReleases[] = {{"gradient", Release::kGradient},
                                                              {"backward", Release::kBackward}};
constexpr std::pair<std::string_view, Order> kOrders[] = {{"list", Order::kList},
                                                          {"priority", Order::kPriority}};
constexpr std::pair<std::string_view, Stage> kStages[] = {{"reduce", Stage::kReduce},
                                                          {"distribute", Stage::kDistribute}};

}  // namespace

template <typename Visitor, fields::Of<Piece> Given>
void visit_fields(Visitor& visit, Given& piece) {
  visit("tensor", piece.tensor, fields::Whole{0, kMostTensors - 1});
  visit("offset_bytes", piece.offset, fields::Whole{0, kLargestTensor});
  visit("length_bytes", piece.length, fields::Whole{1, kLargestTensor});
}

template <typename Visitor, fields::Of<Message> Given>
void visit_fields(Visitor& visit, Given& message) {
  visit("pieces", message.pieces, fields::ListOf{1, kMostPieces, fields::Object{}});
}

/// In the order in which they are read and enter the digest.
template <typename Visitor, fields::Of<Plan> Given>
void visit_fields(Visitor& visit, Given& plan) {
  using Priority = std::numeric_limits<std::int32_t>;
  visit.constant("format", kPlanFormat);
  visit(fields::aside("method"), plan.method, fields::Text{});
  visit("model", plan.model, fields::Text{});
  visit("profile", plan.profile, fields::Text{});
  visit.when_set("layout", plan.layout, fields::Name{});
  visit("workers", plan.workers, fields::Whole{1, kMostProcesses});
  visit("road", plan.road, fields::Object{});
  visit.when_set("library", plan.library, fields::Name{});
  visit.when_set("wire", plan.wire, fields::OneOf{kWireFormats});
  visit.when_set("transport", plan.transport, fields::Name{});
  visit("release", plan.release, fields::OneOf{kReleases});
  visit("order", plan.order, fields::OneOf{kOrders});
  visit("barrier", plan.barrier, fields::OneOf{kBarriers});
  visit("credit_bytes", plan.credit, fields::Whole{0, kLargestCredit});
  visit("messages", plan.messages, fields::ListOf{0, kMostPieces, fields::Object{}});
  visit("priority", plan.priority,
        fields::ListOf{0, kMostPieces, fields::Signed{Priority::min(), Priority::max()}});
  visit.when_set(fields::aside("pace_bytes_per_second"), plan.pace, fields::Real{0, kFastestPace});
  const std::size_t messages = plan.messages.size();
  visit.when_set("server", plan.server, fields::ListOf{0, kMostPieces, fields::Whole{0, kMostProcesses - 1}});
  visit.when_set("window_bytes", plan.window,
                 fields::ListOf{0, kMostPieces, fields::Whole{0, kLargestCredit}});
  visit.when_set("pulls", plan.pulls, fields::ListOf{0, kMostPieces, fields::Object{}});
  const std::size_t back = plan.pulls.empty() ? messages : plan.pulls.size();
  const auto step_fields = [most = std::max(messages, back)](auto& each, auto& step) {
    each("message", step.message, fields::Whole{0, most == 0 ? 0 : most - 1});
    each("stage", step.stage, fields::OneOf{kStages});
  };
  visit(fields::optional("sequence"), plan.sequence,
        fields::ListOf{0, messages + back, fields::ObjectOf{step_fields}});
}

namespace {

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
      plan.road, [](const AllReduce&) {}, check_servers);
  if (!plan.library.empty() && plan.road != Road{AllReduce{Collective::kLibrary}}) {
    reject("library = " + plan.library, describe(plan.road) + " sums by no library: leave it out");
  }
  if (plan.order != Order::kList && needs_one_order(plan.road)) {
    reject("order = priority", describe(plan.road) + " needs the same order on every rank: list");
  }
}

void check_wire(const Plan& plan, DataType type) {
  if (plan.wire == WireFormat::kAsIs || type == DataType::kFloat32) return;
  reject("wire = " + to_string(plan.wire),
         "gradients are of " + to_string(type) + ", and only those of float32 are cast: leave it out");
}

/// Messages of a plan as its file names them.
struct NamedMessages {
  std::string_view name;  ///< "messages", "pulls"
  const std::vector<Message>& list;
};

/// A piece with where the plan has it, for errors.
struct PlacedPiece {
  Piece piece;
  std::string_view list;
  std::size_t message = 0, index = 0;

  std::string where() const { return at(list, message) + "." + at("pieces", index); }
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

std::vector<PlacedPiece> placed_pieces(const NamedMessages& messages) {
  std::vector<PlacedPiece> placed;
  for (std::size_t m = 0; m < messages.list.size(); ++m) {
    const std::vector<Piece>& pieces = messages.list[m].pieces;
    if (pieces.empty()) reject(at(messages.name, m), "has no pieces: must have at least one");
    for (std::size_t p = 0; p < pieces.size(); ++p) placed.push_back({pieces[p], messages.name, m, p});
  }
  return placed;
}

void check_coverage(const NamedMessages& messages, const std::vector<TensorRef>& tensors, DataType type) {
  std::vector<PlacedPiece> placed = placed_pieces(messages);
  for (const PlacedPiece& p : placed) {
    check_piece(p, tensors, element_size(type));
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
      reject(std::string(messages.name), "no message carries tensor " + std::to_string(t) + " from byte " +
                                             std::to_string(covered.count) + " of " +
                                             std::to_string(tensors[t].bytes.count));
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

void check_servers_of_messages(const Plan& plan) {
  if (plan.server.empty()) return;
  const int servers = whole_message_servers(plan.road);
  if (servers == 0) {
    reject("server", describe(plan.road) + " gives no message to one server: leave it out");
  }
  if (plan.server.size() != plan.messages.size()) {
    reject("server", std::to_string(plan.server.size()) + " values for " +
                         std::to_string(plan.messages.size()) + " messages: must be one per message");
  }
  for (std::size_t i = 0; i < plan.server.size(); ++i) {
    if (plan.server[i] < static_cast<std::uint32_t>(servers)) continue;
    reject(at("server", i) + " = " + std::to_string(plan.server[i]),
           "must be one of the " + std::to_string(servers) + " servers, 0 to " + std::to_string(servers - 1));
  }
}

void check_windows(const Plan& plan) {
  if (plan.window.empty() || plan.window.size() == plan.messages.size()) return;
  reject("window_bytes", std::to_string(plan.window.size()) + " values for " +
                             std::to_string(plan.messages.size()) + " messages: must be one per message");
}

void check_may_be_decoupled(const Plan& plan) {
  if (!plan.pulls.empty() && !may_pull_apart(plan.road)) {
    reject("pulls",
           describe(plan.road) +
               " cannot send back what was not pushed as one: needs servers of which each has a part "
               "of every message, without a local sum");
  }
  if (!plan.sequence.empty() && plan.order != Order::kList)
    reject("order = priority", "the sequence says in which order steps start: list");
  if (!plan.pulls.empty() && plan.sequence.empty())
    reject("sequence", "is empty: with pulls it says when each is asked for");
  if (plan.pulls.empty() && !plan.sequence.empty() && !may_be_decoupled(plan.road))
    reject("sequence", describe(plan.road) + " cannot be decoupled: needs an all-to-all road of two stages");
}

void check_sequence(const Plan& plan) {
  check_may_be_decoupled(plan);
  if (plan.sequence.empty()) return;
  const bool apart = !plan.pulls.empty();
  const CommonParts common = common_parts(plan);
  std::vector<std::uint8_t> reduced(plan.messages.size(), 0);
  std::vector<std::uint8_t> distributed(apart ? plan.pulls.size() : plan.messages.size(), 0);
  const auto check_reduced = [&](std::size_t i, std::uint32_t message) {
    if (reduced[message] != 0) return;
    reject(at("sequence", i), (apart ? "pulls what message " : "distributes message ") +
                                  std::to_string(message) + (apart ? " carries" : "") + " before its reduce");
  };
  for (std::size_t i = 0; i < plan.sequence.size(); ++i) {
    const auto [number, stage] = plan.sequence[i];
    std::vector<std::uint8_t>& done = stage == Stage::kDistribute ? distributed : reduced;
    const std::string what = apart && stage == Stage::kDistribute ? "pull " : "message ";
    if (number >= done.size()) {
      reject(at("sequence", i),
             what + std::to_string(number) + " does not exist: the plan has " + std::to_string(done.size()));
    }
    if (stage == Stage::kDistribute && apart) {
      for (const std::uint32_t part : common.of_pull[number]) check_reduced(i, common.parts[part].message);
    } else if (stage == Stage::kDistribute) {
      check_reduced(i, number);
    }
    if (done[number] != 0) {
      reject(at("sequence", i),
             enum_name(stage, kStages) + " of " + what + std::to_string(number) + " appears twice");
    }
    done[number] = 1;
  }
  const auto check_all = [&](const std::vector<std::uint8_t>& done, const std::string& what) {
    const auto missing = std::ranges::find(done, std::uint8_t{0});
    if (missing != done.end())
      reject("sequence", "lacks a stage of " + what + std::to_string(missing - done.begin()));
  };
  check_all(reduced, "message ");
  check_all(distributed, apart ? "pull " : "message ");
}

void check_parts(const Plan& plan, const std::vector<TensorRef>& tensors, DataType type) {
  check_road(plan);
  check_wire(plan, type);
  check_coverage({"messages", plan.messages}, tensors, type);
  if (!plan.pulls.empty()) check_coverage({"pulls", plan.pulls}, tensors, type);
  check_priorities(plan);
  check_servers_of_messages(plan);
  check_windows(plan);
  check_sequence(plan);
}

// --- fields ---------------------------------------------------------------------------------------------

/// Of all messages together: one list of its own may be as long, but not each.
void check_piece_count(const JsonPlace& document, const Plan& plan) {
  std::size_t total = 0;
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    total += plan.messages[m].pieces.size();
    if (total <= kMostPieces) continue;
    const JsonPlace messages = document["messages"];
    const JsonPlace message = messages[m];
    const JsonPlace pieces = message["pieces"];
    pieces.fail_because("more than " + std::to_string(kMostPieces) + " pieces in the plan");
  }
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

Bytes credit_of(const Plan& plan, std::size_t message) {
  return plan.window.empty() ? plan.credit : plan.window[message];
}

Bytes bytes_on(WireFormat wire, Bytes gradients) {
  const std::uint64_t smaller =
      element_size(DataType::kFloat32).count / element_size(wire_type(wire, DataType::kFloat32)).count;
  return Bytes{gradients.count / smaller};
}

Bytes wire_bytes(const Plan& plan, const Message& message) {
  return bytes_on(plan.wire, message_bytes(message));
}

DataType wire_type(WireFormat wire, DataType gradients) {
  switch (wire) {
    case WireFormat::kAsIs:
      return gradients;
    case WireFormat::kBfloat16:
      return DataType::kBfloat16;
    case WireFormat::kFloat16:
      return DataType::kFloat16;
  }
  std::abort();
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
      road, [](const AllReduce&) { return true; },
      [](const ParameterServer& servers) { return servers.local_sum == LocalSum::kFirst; });
}

bool has_two_stages(const Road& road) {
  return match(
      road, [](const AllReduce& all_reduce) { return has_two_stages(all_reduce.algorithm); },
      [](const ParameterServer&) { return true; });
}

bool may_be_decoupled(const Road& road) {
  return match(
      road,
      [](const AllReduce& all_reduce) {
        return has_two_stages(all_reduce.algorithm) || all_reduce.algorithm == Collective::kLibrary;
      },
      [](const ParameterServer&) { return false; });
}

bool goes_through_servers(const Road& road) {
  return match(
      road, [](const AllReduce&) { return false; }, [](const ParameterServer&) { return true; });
}

int whole_message_servers(const Road& road) {
  return match(
      road, [](const AllReduce&) { return 0; },
      [](const ParameterServer& servers) {
        return servers.assignment == Assignment::kHashed ? servers.servers : 0;
      });
}

bool may_pull_apart(const Road& road) {
  return match(
      road, [](const AllReduce&) { return false; },
      [](const ParameterServer& servers) {
        return servers.assignment == Assignment::kEven && servers.local_sum == LocalSum::kNone;
      });
}

std::vector<double> server_loads(const Plan& plan) {
  const auto of_servers = [&](const ParameterServer& road) {
    const auto servers = static_cast<std::uint32_t>(road.servers);
    std::vector<double> loads(servers, 0.0);
    for (std::uint32_t i = 0; i < plan.messages.size(); ++i) {
      const auto bytes = static_cast<double>(message_bytes(plan.messages[i]).count);
      if (road.assignment == Assignment::kHashed) {
        loads[plan.server.empty() ? i % servers : plan.server[i]] += bytes;
      } else {
        for (double& load : loads) load += bytes / servers;
      }
    }
    return loads;
  };
  return match(
      plan.road, [](const AllReduce&) { return std::vector<double>{}; }, of_servers);
}

double server_imbalance(const Plan& plan) {
  const std::vector<double> loads = server_loads(plan);
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (!(total > 0)) return 1;
  return *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / total;
}

int ranks_of(const Plan& plan) {
  const int apart = match(
      plan.road, [](const AllReduce&) { return 0; },
      [](const ParameterServer& servers) {
        return servers.placement == Placement::kDedicated ? servers.servers : 0;
      });
  return plan.workers + apart;
}

void check(const Plan& plan, const Profile& profile) {
  check_profile(plan, profile);
  check_parts(plan, tensors_of(profile), profile.type);
}

void check(const Plan& plan, const TensorLayout& layout) {
  if (const std::string given = digest(layout); !plan.layout.empty() && plan.layout != given) {
    reject("layout", "the plan carries tensors with layout " + plan.layout + ", what is to travel has " +
                         given + ": names, sizes, types and order must be the same");
  }
  std::vector<TensorRef> tensors;
  tensors.reserve(layout.tensors.size());
  for (const Tensor& tensor : layout.tensors) tensors.push_back({0, tensor.bytes});
  check_parts(plan, tensors, layout.type);
}

void read_fields(const JsonPlace& place, Road& road) {
  const JsonPlace kind = place["kind"];
  const std::string name = kind.name();
  if (name == "parameter-server") {
    fields::read_fields(place, road.emplace<ParameterServer>());
  } else if (name == "all-to-all") {
    fields::read_fields(place, road.emplace<AllReduce>());
  } else {
    kind.fail(R"(one of "all-to-all", "parameter-server")");
  }
}

nlohmann::json write_fields(const Road& road) {
  return match(
      road, [](const AllReduce& one) { return fields::write_fields(one); },
      [](const ParameterServer& one) { return fields::write_fields(one); });
}

void digest_fields(Digest& digest, const Road& road) {
  match(
      road, [&](const AllReduce& one) { fields::digest_fields(digest, one); },
      [&](const ParameterServer& one) { fields::digest_fields(digest, one); });
}

Road road_from_json(const JsonPlace& place) {
  Road road;
  read_fields(place, road);
  return road;
}

nlohmann::json to_json(const Road& road) { return write_fields(road); }

Plan plan_from_json(const nlohmann::json& json) {
  const JsonPlace document(json);
  Plan plan;
  fields::read_fields(document, plan);
  check_piece_count(document, plan);
  return plan;
}

nlohmann::json to_json(const Plan& plan) { return fields::write_fields(plan); }

std::string json_text(const Plan& plan) { return fields::text_of(plan); }

std::string digest(const Plan& plan) {
  Digest digest;
  fields::digest_fields(digest, plan);
  return digest.hex();
}

std::string to_string(Collective algorithm) { return enum_name(algorithm, kCollectives); }

std::string to_string(Placement placement) { return enum_name(placement, kPlacements); }

WireFormat wire_format_named(const std::string& name) {
  const nlohmann::json value(name);
  return read_enum(JsonPlace(value), kWireFormats);
}

std::string to_string(WireFormat wire) { return enum_name(wire, kWireFormats); }

Barrier barrier_named(const std::string& name) {
  const nlohmann::json value(name);
  return read_enum(JsonPlace(value), kBarriers);
}

std::string to_string(Barrier barrier) { return enum_name(barrier, kBarriers); }

std::string describe(const Road& road) {
  const auto all_reduce = [](const AllReduce& r) { return "all-to-all " + to_string(r.algorithm); };
  const auto servers = [](const ParameterServer& r) {
    return std::to_string(r.servers) + " " + to_string(r.placement) +
           (r.servers == 1 ? " server" : " servers") +
           (r.first > 0 ? " from worker " + std::to_string(r.first) + " on" : "") +
           (r.assignment == Assignment::kHashed ? ", hashed" : "") +
           (r.local_sum == LocalSum::kFirst ? ", local sum first" : "");
  };
  return match(road, all_reduce, servers);
}

std::string describe_road(const Plan& plan) {
  const std::string road = describe(plan.road);
  return plan.wire == WireFormat::kAsIs ? road : road + ", cast to " + to_string(plan.wire);
}

}  // namespace commtune
