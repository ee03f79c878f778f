// The record is a pickle, as PyTorch writes it:
//
//   ("FORMAT_WITH_STRING_TABLE", (line, …, file name, …), ((offset, (source, start, end), tag), …))
//
// where a source is (indices of its lines, index of its file name, lines before it in the file).
#include "serialization/source_origins.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "core/error.h"
#include "core/function_schema.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "core/source_origin.h"
#include "serialization/pickler.h"
#include "serialization/unpickler.h"

namespace wick {
namespace {

constexpr const char* kFormat = "FORMAT_WITH_STRING_TABLE";

class MarkWriter {
 public:
  std::string write(const std::vector<SourceMark>& marks) {
    std::vector<IValue> rows;
    for (const SourceMark& mark : marks) {
      const bool known = mark.range.valid();
      IValue place(makeTuple({sourceOf(mark.range.source()),
                              static_cast<int64_t>(known ? mark.range.start() : 0),
                              static_cast<int64_t>(known ? mark.range.end() : 0)}));
      constexpr int64_t kNoTag = 0;
      rows.push_back(makeTuple({static_cast<int64_t>(mark.offset), std::move(place), kNoTag}));
    }
    PicklerOptions options;
    options.for_python = false;
    Pickler pickler(options);
    pickler.push(IValue(makeTuple({IValue(std::string(kFormat)), IValue(makeTuple(texts_)),
                                   IValue(makeTuple(std::move(rows)))})));
    return pickler.finish();
  }

 private:
  // Sources of equal text are one.
  using Key = std::tuple<std::string, size_t, std::string_view>;

  int64_t indexOf(std::string text) {
    auto [it, fresh] = indices_.emplace(text, static_cast<int64_t>(texts_.size()));
    if (fresh) texts_.push_back(IValue(std::move(text)));
    return it->second;
  }

  IValue sourceOf(const std::shared_ptr<const Source>& source) {
    if (auto it = known_.find(source.get()); it != known_.end()) return it->second;
    static const Source nowhere("", "");
    const Source& s = source ? *source : nowhere;
    auto [it, fresh] = sources_.try_emplace(Key(s.name(), s.lineNumber(0), s.text()));
    if (fresh) {
      ListRef lines = makeList(types::Int());
      for (size_t at = 0; at < s.text().size();) {
        const size_t end = std::min(s.lineEnd(at) + 1, s.text().size());
        lines->elements.push_back(indexOf(std::string(s.text().substr(at, end - at))));
        at = end;
      }
      it->second =
          makeTuple({IValue(lines), indexOf(s.name()), static_cast<int64_t>(s.lineNumber(0)) - 1});
    }
    return known_.emplace(source.get(), it->second).first->second;
  }

  std::vector<IValue> texts_;
  KeyedMap<std::string, int64_t> indices_;
  std::map<Key, IValue> sources_;
  std::unordered_map<const Source*, IValue> known_;
};

class MarkReader {
 public:
  MarkReader(const Bytes& pickle, const std::string& name, const ArchiveLimits& limits)
      : name_(name), budget_(std::make_shared<LoadBudget>(limits.memoryFor(pickle.size()))) {
    UnpicklerHooks hooks;
    hooks.budget = budget_;
    hooks.parse_type = parseSchemaType;
    root_ = Unpickler(pickle.data, name_, std::move(hooks)).load();
  }

  std::vector<SourceMark> read() {
    const std::vector<IValue>& parts = tuple(root_, 3);
    if (!parts[0].isString() || parts[0].toString() != kFormat) {
      // The form before the table of lines. It says nothing that programs need.
      return {};
    }
    texts_ = &tuple(parts[1]);
    std::vector<SourceMark> marks;
    for (const IValue& row : tuple(parts[2])) {
      const std::vector<IValue>& fields = tuple(row, 3);
      const std::vector<IValue>& place = tuple(fields[1], 3);
      const uint64_t offset = number(fields[0]);
      if (!marks.empty() && offset < marks.back().offset) fail("the marks are not in order");
      std::shared_ptr<const Source> source = sourceOf(place[0]);
      const uint64_t start = number(place[1]), end = number(place[2]);
      // PyTorch itself writes positions in an empty source for what has no position.
      const bool known = start <= end && end <= source->text().size() && !source->text().empty();
      marks.push_back({offset, known ? SourceRange(std::move(source), start, end) : SourceRange()});
    }
    return marks;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throwLoadError("{}: {}", name_, what); }

  const std::vector<IValue>& tuple(const IValue& value, size_t size = SIZE_MAX) const {
    if (!value.isTuple()) fail(fmt::format("expected a tuple, got {}", value.tagName()));
    if (size != SIZE_MAX && value.elements().size() != size) {
      fail(fmt::format("expected a tuple of {}, got {}", size, value.elements().size()));
    }
    return value.elements();
  }
  uint64_t number(const IValue& value) const {
    if (!value.isInt() || value.toInt() < 0) fail("expected a number that is not below zero");
    return static_cast<uint64_t>(value.toInt());
  }
  const std::string& text(const IValue& index) const {
    const uint64_t i = number(index);
    if (i >= texts_->size() || !(*texts_)[i].isString()) fail("a line that is not in the table");
    return (*texts_)[i].toString();
  }

  std::shared_ptr<const Source> sourceOf(const IValue& value) {
    const std::vector<IValue>& parts = tuple(value, 3);
    std::shared_ptr<const Source>& known = sources_[value.rawObject()];
    if (known) return known;
    if (!parts[0].isList()) fail("expected a list of lines");
    uint64_t size = 0;
    for (const IValue& line : parts[0].elements()) {
      if (__builtin_add_overflow(size, text(line).size(), &size)) fail("a source is too long");
    }
    if (!budget_->take(size)) fail("its sources take more memory than a file of its size may");
    std::string all;
    all.reserve(size);
    for (const IValue& line : parts[0].elements()) all += text(line);
    const uint64_t before = number(parts[2]);
    if (before > INT32_MAX) fail("a line number is too large");
    known =
        std::make_shared<Source>(std::move(all), texts_->empty() ? "" : text(parts[1]), before + 1);
    return known;
  }

  std::string name_;
  std::shared_ptr<LoadBudget> budget_;
  IValue root_;
  const std::vector<IValue>* texts_ = nullptr;
  std::unordered_map<const RefCounted*, std::shared_ptr<const Source>> sources_;
};

// Sources know nothing of archives, so what is known of them stands beside.
class Registry {
 public:
  static Registry& instance() {
    static auto* registry = new Registry;
    return *registry;
  }

  void set(const std::shared_ptr<const Source>& source,
           std::function<std::vector<SourceMark>()> read) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= next_sweep_) {
      std::erase_if(entries_, [](const auto& entry) { return entry.second.source.expired(); });
      next_sweep_ = std::max<size_t>(kFirstSweep, 2 * entries_.size());
    }
    entries_[source.get()] = {source, std::move(read), {}};
  }

  SourceRange find(const SourceRange& range) {
    const std::lock_guard lock(mutex_);
    auto it = entries_.find(range.source().get());
    if (it == entries_.end() || it->second.source.lock() != range.source()) return range;
    Entry& entry = it->second;
    if (entry.read) {
      entry.marks = entry.read();
      entry.read = nullptr;
    }
    if (entry.marks.empty()) return range;
    auto after = std::ranges::upper_bound(entry.marks, range.start(), {}, &SourceMark::offset);
    return after == entry.marks.begin() ? SourceRange() : std::prev(after)->range;
  }

 private:
  static constexpr size_t kFirstSweep = 1024;
  struct Entry {
    std::weak_ptr<const Source> source;
    std::function<std::vector<SourceMark>()> read;
    std::vector<SourceMark> marks;
  };
  std::mutex mutex_;
  std::unordered_map<const Source*, Entry> entries_;
  size_t next_sweep_ = kFirstSweep;
};

}  // namespace

std::string writeMarks(const std::vector<SourceMark>& marks) {
  return MarkWriter().write(marks);
}

std::vector<SourceMark> readMarks(const Bytes& pickle, const std::string& name,
                                  const ArchiveLimits& limits) {
  return MarkReader(pickle, name, limits).read();
}

void setOrigins(const std::shared_ptr<const Source>& source,
                std::function<std::vector<SourceMark>()> read) {
  Registry::instance().set(source, std::move(read));
}

SourceRange originOf(const SourceRange& range) {
  return range.valid() ? Registry::instance().find(range) : range;
}

namespace {
const bool installed = (setUserRange(&originOf), true);
}  // namespace

}  // namespace wick
