#include "codegen/llvm/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "codegen/llvm/object_cache.h"
#include "codegen/llvm/target.h"
#include "core/keyed_hash.h"

namespace wick::codegen {

namespace {

[[noreturn]] void fail(llvm::Error error) {
  throw CodegenError(llvm::toString(std::move(error)));
}
template <class T>
T take(llvm::Expected<T> value) {
  if (!value) fail(value.takeError());
  return std::move(*value);
}

// The JIT itself. Never destroyed: code may be released while the process ends.
class Session {
 public:
  static Session& instance() {
    static Session& session = *new Session;
    return session;
  }

  llvm::orc::JITDylib& load(const CodeRequest& request, const std::string& object);
  void unload(llvm::orc::JITDylib& library) {
    // Code that is gone already is not an error worth reporting.
    llvm::consumeError(jit_->getExecutionSession().removeJITDylib(library));
  }
  void* find(llvm::orc::JITDylib& library, std::string_view symbol) {
    return take(jit_->lookup(library, llvm::StringRef(symbol.data(), symbol.size())))
        .toPtr<void*>();
  }
  void define(std::string_view name, const void* address);

 private:
  Session();
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  llvm::orc::JITDylib* runtime_;  // what defineSymbol() defined
  std::mutex mutex_;
  KeyedMap<std::string, const void*> defined_;
  uint64_t loaded_ = 0;
};

Session::Session() {
  hostDescription();
  llvm::orc::LLJITBuilder builder;
  // The objects come compiled and have no initializers.
  builder.setPlatformSetUp(llvm::orc::setUpInactivePlatform);
  jit_ = take(builder.create());
  runtime_ = &jit_->getMainJITDylib();
}

llvm::orc::JITDylib& Session::load(const CodeRequest& request, const std::string& object) {
  auto& session = jit_->getExecutionSession();
  llvm::orc::JITDylib* library;
  {
    std::lock_guard lock(mutex_);
    library = &session.createBareJITDylib(fmt::format("{}.{}", request.name, ++loaded_));
  }
  library->addToLinkOrder(*runtime_);
  if (auto process = jit_->getProcessSymbolsJITDylib()) library->addToLinkOrder(*process);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, request.name);
  if (auto error = jit_->addObjectFile(*library, std::move(buffer))) {
    unload(*library);
    fail(std::move(error));
  }
  return *library;
}

void Session::define(std::string_view name, const void* address) {
  std::lock_guard lock(mutex_);
  auto [it, added] = defined_.emplace(name, address);
  if (!added) {
    if (it->second == address) return;
    throw CodegenError(fmt::format("symbol {} has two addresses", name));
  }
  llvm::orc::SymbolMap symbols;
  symbols[jit_->mangleAndIntern(it->first)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                               llvm::JITSymbolFlags::Exported};
  if (auto error = runtime_->define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
    fail(std::move(error));
  }
}

class LoadedCode : public MachineCode {
 public:
  LoadedCode(const CodeRequest& request, const std::string& object)
      : library_(Session::instance().load(request, object)) {}
  ~LoadedCode() override { Session::instance().unload(library_); }
  void* find(std::string_view symbol) const override {
    return Session::instance().find(library_, symbol);
  }

 private:
  llvm::orc::JITDylib& library_;
};

// Lets perf name the functions: it reads /tmp/perf-PID.map.
void describeToPerf(const MachineCode& code, const std::string& object) {
  static const bool wanted = std::getenv("WICK_PERF_MAP") != nullptr;
  if (!wanted) return;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static std::ofstream map(fmt::format("/tmp/perf-{}.map", getpid()), std::ios::app);
  for (const CodeSymbol& symbol : functionsOf(object)) {
    map << fmt::format("{:x} {:x} wick:{}\n", reinterpret_cast<uintptr_t>(code.find(symbol.name)),
                       symbol.size, symbol.name);
  }
  map.flush();
}

// A context and the module built in it.
struct BuiltModule {
  explicit BuiltModule(const CodeRequest& request)
      : host(hostDescription()), module(request.name, context) {
    prepareForHost(module);
    request.emit(module);
  }
  const std::string& host;  // asked for first, which starts LLVM
  llvm::LLVMContext context;
  llvm::Module module;
};

std::string textOf(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

// Code by content: what is loaded, and what is being made.
class CodeTable {
 public:
  static CodeTable& instance() {
    static CodeTable& table = *new CodeTable;
    return table;
  }
  std::shared_ptr<const MachineCode> get(const CodeRequest& request);
  JitStatistics statistics() {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  struct Entry {
    std::weak_ptr<const MachineCode> code;
    bool being_made = false;
  };
  std::shared_ptr<const MachineCode> make(const CodeRequest& request);
  void forgetDead();

  std::mutex mutex_;
  std::condition_variable made_;
  KeyedMap<std::string, Entry> entries_;  // by content
  size_t forget_at_ = 64;
  JitStatistics statistics_;
};

std::shared_ptr<const MachineCode> CodeTable::get(const CodeRequest& request) {
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] {
    auto it = entries_.find(request.content);
    return it == entries_.end() || !it->second.being_made;
  });
  if (entries_.size() >= forget_at_) forgetDead();
  Entry& entry = entries_[request.content];
  if (auto code = entry.code.lock()) {
    ++statistics_.shared;
    return code;
  }
  entry.being_made = true;
  lock.unlock();
  std::shared_ptr<const MachineCode> code;
  auto finish = [&] {
    lock.lock();
    Entry& made = entries_[request.content];
    made.being_made = false;
    made.code = code;
    if (!code) ++statistics_.failed;
    made_.notify_all();
  };
  try {
    code = make(request);
  } catch (...) {
    finish();
    throw;
  }
  finish();
  return code;
}

std::shared_ptr<const MachineCode> CodeTable::make(const CodeRequest& request) {
  const ObjectCache& disk = ObjectCache::ofUser();
  std::string key = ObjectCache::keyOf(request.content);
  if (auto object = disk.load(key)) {
    auto code = std::make_shared<LoadedCode>(request, *object);
    describeToPerf(*code, *object);
    std::lock_guard lock(mutex_);
    ++statistics_.from_disk;
    return code;
  }
  auto begin = std::chrono::steady_clock::now();
  BuiltModule built(request);
  optimizeForHost(built.module, request.optimization);
  std::string object = emitObject(built.module);
  auto code = std::make_shared<LoadedCode>(request, object);
  std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  describeToPerf(*code, object);
  disk.store(key, object);
  std::lock_guard lock(mutex_);
  ++statistics_.compiled;
  statistics_.compile_times.push_back(taken.count());
  return code;
}

void CodeTable::forgetDead() {
  std::erase_if(entries_, [](const auto& item) {
    return !item.second.being_made && item.second.code.expired();
  });
  forget_at_ = std::max<size_t>(64, 2 * entries_.size());
}

}  // namespace

std::shared_ptr<const MachineCode> compile(const CodeRequest& request) {
  return CodeTable::instance().get(request);
}

std::string llvmText(const CodeRequest& request) {
  return textOf(BuiltModule(request).module);
}

std::string optimizedLlvmText(const CodeRequest& request) {
  BuiltModule built(request);
  optimizeForHost(built.module, request.optimization);
  return textOf(built.module);
}

std::string assemblyText(const CodeRequest& request) {
  BuiltModule built(request);
  optimizeForHost(built.module, request.optimization);
  return emitAssembly(built.module);
}

void defineSymbol(std::string_view name, const void* address) {
  Session::instance().define(name, address);
}

unsigned vectorBits() {
  return hostVectorBits();
}

JitStatistics jitStatistics() {
  return CodeTable::instance().statistics();
}

}  // namespace wick::codegen
