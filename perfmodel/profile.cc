#include "perfmodel/profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/fields.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/tensor_limits.h"

namespace commtune {

namespace {

// Bounds that keep every sum within 64 bits, as those of a tensor do.
constexpr std::size_t kMostLayers = 1'000'000;
constexpr std::uint64_t kLargestBatch = 1'000'000'000;
constexpr double kLongestLayer = 1e6;  // seconds
constexpr double kMostMacs = 1e18;

constexpr std::string_view kProfileFormat = "commtune/profile/1";
constexpr std::pair<std::string_view, DataType> kDataTypes[] = {
    {"float32", DataType::kFloat32}, {"float16", DataType::kFloat16}, {"bfloat16", DataType::kBfloat16}};

Seconds sum_of(const std::vector<Layer>& layers, Seconds Layer::*time) {
  Seconds total{0};
  for (const Layer& layer : layers) {
    total += layer.*time;
  }
  return total;
}

Bytes scaled_bytes(const Tensor& tensor, double factor, Bytes element) {
  const std::uint64_t elements = tensor.bytes.count / element.count;
  const std::uint64_t largest = kLargestTensor / element.count;
  const double rounded = std::max(1.0, std::round(static_cast<double>(elements) * factor));
  if (!(rounded <= static_cast<double>(largest))) {
    throw Error(ErrorCode::kBadInput, "bytes_factor = " + nlohmann::json(factor).dump() + ": makes tensor " +
                                          tensor.name + " larger than " + format_size({kLargestTensor}));
  }
  return {static_cast<std::uint64_t>(rounded) * element.count};
}

Seconds scaled_time(Seconds time, double factor) {
  const Seconds result = time * factor;
  if (!(result.count() <= kLongestLayer)) {
    throw Error(ErrorCode::kBadInput, "time_factor = " + nlohmann::json(factor).dump() +
                                          ": makes a layer longer than " +
                                          format_time(Seconds{kLongestLayer}));
  }
  return result;
}

void check_factor(const char* name, double factor) {
  if (!(factor > 0 && std::isfinite(factor))) {
    throw Error(ErrorCode::kBadInput,
                std::string(name) + " = " + std::to_string(factor) + ": must be positive and finite");
  }
}

}  // namespace

// --- fields ---------------------------------------------------------------------------------------------
// The digest is that of the times: names and origin are aside, and so is what no prediction looks at.

template <typename Visitor, fields::Of<ProfileOrigin> Given>
void visit_fields(Visitor& visit, Given& origin) {
  visit("how", origin.how, fields::Name{});
  visit(fields::optional("device"), origin.device, fields::Text{});
  visit(fields::optional("source"), origin.source, fields::Text{});
  visit(fields::optional("note"), origin.note, fields::Text{});
}

void read_fields(const JsonPlace& place, ProfileOrigin& origin) {
  fields::read_fields(place, origin);
  if (origin.how != "measured" && origin.how != "derived" && origin.how != "published") {
    const JsonPlace how = place["how"];
    how.fail(R"(one of "measured", "derived", "published")");
  }
}

template <typename Visitor, fields::Of<Tensor> Given>
void visit_fields(Visitor& visit, Given& tensor) {
  visit(fields::aside("name"), tensor.name, fields::Name{});
  visit("bytes", tensor.bytes, fields::Whole{1, kLargestTensor});
}

template <typename Visitor, fields::Of<Layer> Given>
void visit_fields(Visitor& visit, Given& layer) {
  constexpr fields::Real kTime{0, kLongestLayer};
  visit(fields::aside("name"), layer.name, fields::Name{});
  visit("forward_seconds", layer.forward, kTime);
  visit("backward_seconds", layer.backward, kTime);
  visit(fields::optional("update_seconds"), layer.update, kTime);
  visit(fields::aside(fields::optional("macs_per_sample")), layer.macs_per_sample,
        fields::Real{0, kMostMacs});
  visit(fields::optional("tensors"), layer.tensors, fields::ListOf{0, kMostTensors, fields::Object{}});
}

template <typename Visitor, fields::Of<Profile> Given>
void visit_fields(Visitor& visit, Given& profile) {
  visit.constant("format", kProfileFormat);
  visit(fields::aside("model"), profile.model, fields::Name{});
  visit("batch", profile.batch, fields::Whole{0, kLargestBatch});
  visit("data_type", profile.type, fields::OneOf{kDataTypes});
  visit(fields::aside("origin"), profile.origin, fields::Object{});
  visit("layers", profile.layers, fields::ListOf{1, kMostLayers, fields::Object{}});
}

namespace {

/// What no field shows by itself: whole elements, and no more tensors than all lists together may have.
void check_tensors(const JsonPlace& document, const Profile& profile) {
  const JsonPlace layers = document["layers"];
  const Bytes element = element_size(profile.type);
  std::size_t tensors = 0;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const std::vector<Tensor>& of_layer = profile.layers[l].tensors;
    tensors += of_layer.size();
    const JsonPlace layer = layers[l];
    if (tensors > kMostTensors)
      layer.fail_because("more than " + std::to_string(kMostTensors) + " tensors in the profile");
    for (std::size_t t = 0; t < of_layer.size(); ++t) {
      if (of_layer[t].bytes.count % element.count == 0) continue;
      const JsonPlace list = layer["tensors"];
      const JsonPlace tensor = list[t];
      const JsonPlace bytes = tensor["bytes"];
      bytes.fail("a multiple of the element size " + std::to_string(element.count));
    }
  }
}

}  // namespace

Bytes element_size(DataType type) { return type == DataType::kFloat32 ? 4_B : 2_B; }

std::string to_string(DataType type) { return enum_name(type, kDataTypes); }

Seconds Profile::forward() const { return sum_of(layers, &Layer::forward); }
Seconds Profile::backward() const { return sum_of(layers, &Layer::backward); }
Seconds Profile::update() const { return sum_of(layers, &Layer::update); }

Bytes Profile::gradient_bytes() const {
  Bytes total;
  for (const Layer& layer : layers) {
    for (const Tensor& tensor : layer.tensors) {
      total += tensor.bytes;
    }
  }
  return total;
}

std::size_t Profile::tensor_count() const {
  std::size_t count = 0;
  for (const Layer& layer : layers) {
    count += layer.tensors.size();
  }
  return count;
}

std::vector<TensorRef> tensors_of(const Profile& profile) {
  std::vector<TensorRef> refs;
  refs.reserve(profile.tensor_count());
  for (std::uint32_t l = 0; l < profile.layers.size(); ++l) {
    for (const Tensor& tensor : profile.layers[l].tensors) {
      refs.push_back({l, tensor.bytes});
    }
  }
  return refs;
}

Profile scaled(const Profile& profile, double bytes_factor, double time_factor) {
  check_factor("bytes_factor", bytes_factor);
  check_factor("time_factor", time_factor);
  const Bytes element = element_size(profile.type);
  Profile result = profile;
  for (Layer& layer : result.layers) {
    layer.forward = scaled_time(layer.forward, time_factor);
    layer.backward = scaled_time(layer.backward, time_factor);
    layer.update = scaled_time(layer.update, time_factor);
    for (Tensor& tensor : layer.tensors) {
      tensor.bytes = scaled_bytes(tensor, bytes_factor, element);
    }
  }
  result.origin.note += (result.origin.note.empty() ? "" : " ") + std::string("Scaled: bytes by ") +
                        nlohmann::json(bytes_factor).dump() + ", times by " +
                        nlohmann::json(time_factor).dump() + ".";
  return result;
}

Profile profile_from_json(const nlohmann::json& json) {
  const JsonPlace document(json);
  Profile profile;
  fields::read_fields(document, profile);
  check_tensors(document, profile);
  return profile;
}

nlohmann::json to_json(const Profile& profile) { return fields::write_fields(profile); }

std::string digest(const Profile& profile) {
  Digest digest;
  fields::digest_fields(digest, profile);
  return digest.hex();
}

}  // namespace commtune
