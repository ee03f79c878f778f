// Vectors: a vector for each token.
#include <mutex>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "extensions/text/text.h"
#include "runtime/ops/common_calls.h"

namespace wick::text {

namespace {

constexpr const char* kName = "Vectors";
constexpr const char* kVersion = "0.0.1";

class Vectors {
 public:
  Vectors(const std::vector<std::string>& tokens, const std::vector<int64_t>& indices,
          Tensor vectors, Tensor unknown)
      : Vectors(std::move(vectors), std::move(unknown)) {
    WICK_CHECK(tokens.size() == indices.size(),
               "Mismatching sizes for tokens and indices. Size of tokens: {}, size of indices: {}.",
               tokens.size(), indices.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      WICK_CHECK(addToken(tokens[i], indices[i]), "Duplicate token found in tokens list: {}",
                 tokens[i]);
    }
  }

  Tensor at(const std::string& token) {
    std::unique_lock lock(*mutex_);
    return find(token);
  }
  Tensor all(const std::vector<std::string>& tokens) {
    std::unique_lock lock(*mutex_);
    std::vector<Tensor> rows;
    rows.reserve(tokens.size());
    for (const std::string& token : tokens) rows.push_back(find(token));
    return ops::stack(makeTensorList(rows), 0);
  }
  void set(const std::string& token, const Tensor& vector) {
    std::unique_lock lock(*mutex_);
    const auto known = indices_.find(token);
    if (known != indices_.end()) {
      ops::copyInto(ops::select(vectors_, 0, known->second), vector);
    } else {
      WICK_CHECK(vectors_.dim() > 0, "{}: the vectors have no dimension", kName);
      const int64_t next = vectors_.sizes()[0];
      vectors_ = ops::cat(makeTensorList({vectors_, ops::unsqueeze(vector, 0)}), 0);
      addToken(token, next);
    }
    known_[token] = vector;
  }
  // torchtext counts the vectors that were asked for or set.
  int64_t size() const {
    std::unique_lock lock(*mutex_);
    return static_cast<int64_t>(known_.size());
  }

  // ("0.0.1", indices, tokens, [vectors, the vector of unknown tokens])
  IValue state() const {
    std::unique_lock lock(*mutex_);
    std::vector<int64_t> indices;
    for (const std::string& token : tokens_) indices.push_back(indices_.find(token)->second);
    return detail::resultValue(std::tuple(std::string(kVersion), indices, tokens_,
                                          std::vector<Tensor>{vectors_, unknown_}));
  }
  static Vectors fromState(const IValue& state) {
    const std::vector<IValue>& parts = stateParts(kName, state, 4);
    const auto version = parts[0].to<std::string>();
    const auto indices = parts[1].to<std::vector<int64_t>>();
    const auto tokens = parts[2].to<std::vector<std::string>>();
    const auto tensors = parts[3].to<std::vector<Tensor>>();
    WICK_CHECK(version >= kVersion, "Found unexpected version for serialized Vector: {}.", version);
    WICK_CHECK(indices.size() == tokens.size(),
               "Expected `integers` and `strings` states to be the same size.");
    WICK_CHECK(tensors.size() == 2, "the state of {}: expected 2 tensors, got {}", kName,
               tensors.size());
    return {tokens, indices, tensors[0], tensors[1]};
  }

 private:
  Vectors(Tensor vectors, Tensor unknown)
      : vectors_(std::move(vectors)), unknown_(std::move(unknown)) {
    WICK_CHECK(vectors_.defined() && unknown_.defined(), "{}: expected tensors", kName);
    // Programs may hold the tensor as a constant, which __setitem__ must not change.
    vectors_ = ops::clone(vectors_);
  }

  bool addToken(const std::string& token, int64_t index) {
    memory_.add(kName, 3 * HeldMemory::of(token));
    if (!indices_.emplace(token, index).second) return false;
    tokens_.push_back(token);
    return true;
  }
  Tensor find(const std::string& token) {
    if (const auto known = known_.find(token); known != known_.end()) return known->second;
    const auto index = indices_.find(token);
    if (index == indices_.end()) return unknown_;
    return known_[token] = ops::select(vectors_, 0, index->second);
  }

  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  Tensor vectors_;
  Tensor unknown_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t, KeyedHash, std::equal_to<>> indices_;
  // Those that were asked for or set.
  std::unordered_map<std::string, Tensor, KeyedHash, std::equal_to<>> known_;
  HeldMemory memory_;
};

}  // namespace

void defineVectors(Extension& extension) {
  extension.object<Vectors>(kName)
      .init<std::vector<std::string>, std::vector<int64_t>, Tensor, Tensor>()
      // They share the memory of what the object holds.
      .def("__getitem__(str _0) -> Tensor(*)", &Vectors::at)
      .def("lookup_vectors", &Vectors::all)
      .def("__setitem__", &Vectors::set)
      .def("__len__", &Vectors::size)
      .pickle(&Vectors::state, &Vectors::fromState);
}

}  // namespace wick::text
