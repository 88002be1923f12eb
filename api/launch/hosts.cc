#include "api/launch/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <span>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

constexpr std::size_t kMostHosts = 65'536;
constexpr int kMostSlots = 65'536;
constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;
       at = text.find_first_not_of(kBlank, at)) {
    const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// Splits at commas that are not inside brackets.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) {
      items.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  items.push_back(text.substr(start));
  return items;
}

std::optional<int> parse_count(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > most) return {};
  return value;
}

/// Names go to mpirun and from there to a remote shell, so they are held to what a host name may be.
void check_name(std::string_view name, std::string_view where) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  if (name.find('@') != std::string_view::npos)
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}host \"{}\": a user name cannot be given here; put `User` for that host into "
                            "~/.ssh/config",
                            where, name));
  if (name.empty() || name.front() == '-' || !std::all_of(name.begin(), name.end(), allowed))
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}host \"{}\": must be made of letters, digits, '.', '-' and '_' and not start "
                            "with '-'",
                            where, name));
}

/// Collects hosts in order of first mention; slots of a host named again add up.
class Collector {
 public:
  void add(const std::string& name, int slots) {
    const auto [place, is_new] = index_.try_emplace(name, list_.hosts.size());
    if (is_new) {
      list_.hosts.push_back(Host{name, slots});
      return;
    }
    int& known = list_.hosts[place->second].slots;
    known = known == 0 || slots == 0 ? 0 : known + slots;
  }
  void note(std::string text) { list_.notes.push_back(std::move(text)); }
  HostList take(std::string_view source) {
    if (list_.hosts.empty())
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}: names no host; expected lines such as `node1 slots=4`", source));
    return std::move(list_);
  }

 private:
  HostList list_;
  std::map<std::string, std::size_t> index_;
};

/// "a-b" or "n" inside brackets; keeps the width of a written with leading zeros.
void expand_item(std::string_view item, std::string_view prefix, std::string_view suffix,
                 std::string_view pattern, std::vector<std::string>& out) {
  const auto dash = item.find('-');
  const std::string_view low_text = item.substr(0, dash);
  const auto low = parse_count(low_text, 1'000'000'000);
  const auto high = dash == std::string_view::npos ? low : parse_count(item.substr(dash + 1), 1'000'000'000);
  if (!low || !high || *low > *high)
    throw Error(ErrorCode::kBadInput,
                fmt::format("host range \"{}\": \"{}\" must be a number or low-high", pattern, item));
  if (static_cast<std::size_t>(*high - *low) >= kMostHosts - std::min(out.size(), kMostHosts))
    throw Error(ErrorCode::kBadInput,
                fmt::format("host range \"{}\": more than {} hosts", pattern, kMostHosts));
  const std::size_t width = low_text.size() > 1 && low_text.front() == '0' ? low_text.size() : 0;
  for (int i = *low; i <= *high; ++i) out.push_back(fmt::format("{}{:0>{}}{}", prefix, i, width, suffix));
}

/// Slots that a hostfile line's words after the name give; nullopt when it gives none.
std::optional<int> slots_of(std::span<const std::string_view> words, const std::string& where) {
  std::optional<int> slots;
  for (const std::string_view word : words) {
    const auto equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    if (equals == std::string_view::npos || (key != "slots" && key != "max_slots" && key != "max-slots"))
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}\"{}\": expected slots=N or max_slots=N after the host", where, word));
    const auto value = parse_count(word.substr(equals + 1), kMostSlots);
    if (!value || *value == 0)
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}\"{}\": must be a whole number from 1 to {}", where, word, kMostSlots));
    if (key == "slots") slots = value;
  }
  return slots;
}

}  // namespace

int known_ranks(const HostList& list) {
  int sum = 0;
  for (const Host& host : list.hosts) {
    if (host.slots == 0) return 0;
    sum += host.slots;
  }
  return sum;
}

std::vector<std::string> expand_ranges(std::string_view pattern) {
  const auto open = pattern.find('[');
  const auto close = pattern.find(']');
  if (open == std::string_view::npos && close == std::string_view::npos) return {std::string(pattern)};
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      pattern.find('[', open + 1) != std::string_view::npos ||
      pattern.find(']', close + 1) != std::string_view::npos)
    throw Error(ErrorCode::kBadInput,
                fmt::format("host range \"{}\": expected one pair of brackets, as in node[0-3,12]", pattern));
  std::vector<std::string> names;
  for (const std::string_view item : split_list(pattern.substr(open + 1, close - open - 1)))
    expand_item(trim(item), pattern.substr(0, open), pattern.substr(close + 1), pattern, names);
  return names;
}

HostList parse_hostfile(std::string_view text, std::string_view source) {
  Collector found;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}: ", source, number);
    const std::vector<std::string_view> words = split_words(line);
    const auto slots = slots_of(std::span(words).subspan(1), where);
    for (const std::string& name : expand_ranges(words.front())) {
      check_name(name, where);
      found.add(name, slots.value_or(0));
      if (!slots)
        found.note(
            fmt::format("{}{} has no slots=: understood as one rank for each of its cores; write "
                        "slots=N to choose",
                        where, name));
    }
  }
  return found.take(source);
}

HostList parse_host_list(std::string_view text) {
  Collector found;
  for (std::string_view item : split_list(text)) {
    item = trim(item);
    const std::string where = fmt::format("-H {}: ", text);
    const auto colon = item.rfind(':');
    std::optional<int> slots;
    if (colon != std::string_view::npos) {
      slots = parse_count(item.substr(colon + 1), kMostSlots);
      if (!slots || *slots == 0)
        throw Error(
            ErrorCode::kBadInput,
            fmt::format("{}\"{}\": after ':' must be a whole number from 1 to {}", where, item, kMostSlots));
    }
    for (const std::string& name : expand_ranges(item.substr(0, colon))) {
      check_name(name, where);
      found.add(name, slots.value_or(1));
      if (!slots) found.note(fmt::format("{}{} has no :N: understood as one rank", where, name));
    }
  }
  return found.take("-H");
}

HostList local_hosts(int ranks) {
  if (ranks < 1 || ranks > kMostSlots)
    throw Error(ErrorCode::kBadInput,
                fmt::format("local ranks = {}: must be from 1 to {}", ranks, kMostSlots));
  return HostList{{Host{"localhost", ranks}}, {}};
}

HostList first_ranks(HostList list, int ranks) {
  if (known_ranks(list) <= ranks) return list;
  for (Host& host : list.hosts) {
    host.slots = std::min(host.slots, ranks);
    ranks -= host.slots;
  }
  std::erase_if(list.hosts, [](const Host& host) { return host.slots == 0; });
  return list;
}

bool all_local(const HostList& list) {
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) != 0) own[0] = '\0';
  return std::all_of(list.hosts.begin(), list.hosts.end(), [&](const Host& host) {
    return host.name == "localhost" || host.name == "127.0.0.1" || host.name == own.data();
  });
}

}  // namespace commtune::api
