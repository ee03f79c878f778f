"""try, except, else, finally, raise, and exceptions of all kinds."""

LOG = []


class Custom(Exception):
    def __init__(self, code, detail=None):
        super().__init__(f"code {code}")
        self.code = code
        self.detail = detail


class Special(Custom):
    pass


def fail(kind, *args):
    raise kind(*args)


@program(given((3,)))
def caught_inside(x):
    try:
        x = x + 1
        raise ValueError("wrong")
    except ValueError as error:
        return x * 2, str(error), error.args


@program([given((3,), 0), given((3,), 1), given((3,), 2), given((3,), 3)])
def all_clauses(x, n):
    log = []
    try:
        log.append("try")
        if n == 1:
            raise ValueError("one")
        if n == 2:
            raise KeyError("two")
        if n == 3:
            return x * 3, log
    except ValueError:
        log.append("except")
        x = x + 10
    except (KeyError, IndexError) as error:
        log.append(error.args)
        x = x + 20
    else:
        log.append("else")
        x = x + 30
    finally:
        log.append("finally")
        x = x * 2
    return x, log


@program(given((3,)), raises="Custom")
def escapes_with_attributes(x):
    y = x + 1
    raise Custom(7, y)


@program(given((3,)), check=lambda: LOG, raises="Custom")
def escapes_after_effects(x):
    LOG.append(x + 1)
    x.mul_(2)
    fail(Custom, 3)
    LOG.append("never")


@program(given((3,)), raises="Custom")
def raise_from(x):
    try:
        {}["k"]
    except KeyError as error:
        raise Custom(1, x * 2) from error


@program(given((3,)), raises="Custom")
def raise_from_none(x):
    try:
        {}["k"]
    except KeyError:
        raise Custom(2, x + 1) from None


@program(given((3,)), raises="ZeroDivisionError")
def raise_within_handler(x):
    try:
        raise ValueError("first")
    except ValueError:
        x = x + 1
        return x / (1 // 0)


@program(given((3,)), raises="ValueError")
def raise_again(x):
    try:
        fail(ValueError, "again")
    except ValueError:
        x.add_(1)
        raise


@program(given((3,)))
def raise_again_caught_outside(x):
    try:
        try:
            fail(KeyError, "k")
        except KeyError as error:
            x = x + 1
            error.note = "noted"
            raise
        finally:
            x = x * 2
    except LookupError as error:
        return x, error.note, type(error)


@program(given((3,)))
def context_and_cause(x):
    try:
        try:
            raise ValueError("inner")
        except ValueError:
            raise KeyError("outer")
    except KeyError as error:
        return x * 2, type(error.__context__), error.__cause__, error.__suppress_context__


@program([given((3,), 1), given((3,), 2), given((3,), 3)])
def subclasses_and_order(x, n):
    try:
        fail(Special if n == 1 else Custom if n == 2 else OSError, n)
    except Special as error:
        return x + error.code, "special"
    except Custom as error:
        return x - error.code, "custom"
    except Exception as error:
        return x, type(error).__name__
    return None


@program(given((3,)))
def exception_in_callee_in_loop(x):
    caught = 0
    for n in (1, 0, 2, 0):
        try:
            x = x + 6 // n
        except ZeroDivisionError:
            caught += 1
            continue
        x = x * 2
    return x, caught


@program(given((3,)))
def return_in_finally_wins(x):
    def f():
        try:
            return x + 1
        finally:
            return x + 2

    def g():
        try:
            fail(ValueError)
        finally:
            return x + 3

    return f(), g()


@program([given((3,), True), given((3,), False)])
def leave_loop_through_finally(x, leave):
    log = []
    for i in range(3):
        try:
            if leave and i == 1:
                break
            if i == 0:
                continue
            x = x + i
        finally:
            log.append(i)
            x = x * 2
    else:
        x = x - 100
    return x, log


@program(given((3,)))
def nested_finally(x):
    log = []
    try:
        try:
            try:
                fail(ValueError, "v")
            finally:
                log.append(1)
        finally:
            log.append(2)
            x = x + 1
    except ValueError as error:
        log.append(str(error))
    return x, log


@program(given((3,)))
def operator_fails_in_try(x):
    log = ["before"]
    try:
        y = x + 1
        log.append("half")
        z = y + torch.ones(7)
        log.append("never")
    except RuntimeError as error:
        return y * 2, log, type(error)
    return z


@program(given((3,)))
def write_fails_in_try(x):
    try:
        x.add_(1)
        x[5] = 7
    except IndexError:
        x.mul_(2)
    return x


@program(given((3,)))
def errors_of_python_itself(x):
    caught, nothing, five = [], None, 5
    for attempt in (lambda: 1 / 0, lambda: [][1], lambda: {}["a"], lambda: nothing.a, lambda: int("z"), lambda: 1 + "a", lambda: len(5), lambda: nothing(),
                    lambda: "a" < 1, lambda: [1][nothing], lambda: (1).b, lambda: iter(5), lambda: -"a", lambda: five[0], lambda: next(iter([]))):
        try:
            attempt()
        except Exception as error:
            caught.append((type(error), str(error)))
    return x + len(caught), caught


@program(given((3,)))
def exception_as_value(x):
    error = Custom(5)
    made = [error, ValueError("v", 2), KeyError]
    try:
        raise error
    except Custom as same:
        return x + same.code, same is error, made


@program(given((3,)))
def raise_class_or_instance(x):
    caught = []
    for kind in (ValueError, ValueError("text"), Custom(3)):
        try:
            raise kind
        except (ValueError, Custom) as error:
            caught.append(repr(error))
    try:
        raise 5
    except TypeError as error:
        caught.append(str(error))
    return x * 2, caught


@program(given((3,)))
def name_is_deleted_after_handler(x):
    error = "outer"
    try:
        fail(ValueError)
    except ValueError as error:
        x = x + 1
    try:
        error
    except UnboundLocalError as unbound:
        return x, str(unbound)


@program(given((3,)), graphs=None, breaks="sys.exc_info() asks the thread")
def current_exception(x):
    import sys

    before = sys.exc_info()[0]
    try:
        fail(ValueError, "v")
    except ValueError:
        during = sys.exc_info()[0]
        try:
            fail(KeyError)
        except KeyError:
            inner = sys.exc_info()[0]
        again = sys.exc_info()[0]
    return x + 1, before, during, inner, again, sys.exc_info()[0]


@program(given((3,)), graphs=None, breaks="groups of exceptions are split by Python")
def exception_groups(x):
    log = []
    try:
        y = x + 1
        raise ExceptionGroup("many", [ValueError("v"), KeyError("k"), ValueError("w"), TypeError("t")])
    except* ValueError as group:
        log.append([str(e) for e in group.exceptions])
        y = y * 2
    except* (KeyError, TypeError) as group:
        log.append(len(group.exceptions))
    return y, log


@program(given((3,)), graphs=None, breaks="groups of exceptions are split by Python", raises="ExceptionGroup")
def exception_group_goes_on(x):
    try:
        raise ExceptionGroup("many", [ValueError("v"), ExceptionGroup("inner", [KeyError(1), OSError(2)])])
    except* KeyError:
        x.add_(1)
    except* ValueError:
        x.mul_(2)


@program(given((3,)), graphs=None, breaks="groups of exceptions are split by Python")
def single_exception_as_group(x):
    try:
        raise KeyError("k")
    except* KeyError as group:
        found = x + len(group.exceptions), type(group).__name__
    return found


@program([given((3,), 5), given((3,), -5)], raises="AssertionError")
def assertions(x, n):
    assert x.shape == (3,)
    assert n > 0, f"n is {n}"
    return x * n


@program(given((3,)), raises="SystemExit")
def system_exit(x):
    x.add_(1)
    raise SystemExit(3)


@program(given((3,)))
def notes(x):
    try:
        error = ValueError("v")
        error.add_note("a note")
        raise error
    except ValueError as caught:
        return x + 1, caught.__notes__


@program(given((3,)), graphs=None, breaks="print writes")
def print_in_try_and_finally(x):
    try:
        y = x + 1
        print("try")
        fail(ValueError, "v")
    except ValueError as error:
        print("except", error)
        y = y * 2
    finally:
        print("finally")
        y = y + 3
    return y


@program(given((3,)), graphs=None, breaks="print writes", raises="KeyError")
def print_in_handler_that_raises(x):
    y = x + 1
    try:
        fail(ValueError)
    except ValueError:
        print("handler")
        y = y + 1
        raise KeyError("k") from None
    finally:
        print("finally")
        x.copy_(y)


@program(given((3,)), graphs=None, breaks="print writes")
def break_in_handler_keeps_current_exception(x):
    try:
        fail(ValueError, "kept")
    except ValueError as error:
        y = x + 1
        print("handler")
        z = y * 2
        try:
            raise
        except ValueError as same:
            return z, same is error
    return None


@program(given((3,)))
def deep_raise(x):
    def a(n):
        if n == 0:
            raise Custom("deep")
        try:
            return a(n - 1)
        finally:
            x.add_(n)

    try:
        a(3)
    except Custom as error:
        return x * 2, error.code


@program(given((3,)))
def comparison_with_many_kinds(x):
    kinds = (KeyError, ValueError)
    hits = []
    for kind in (KeyError, ValueError, IndexError):
        try:
            raise kind(kind.__name__)
        except kinds as error:
            hits.append(error.args[0])
        except Exception:
            hits.append(None)
    return x + len(hits), hits


@program(given((3,)), raises="TypeError", graphs=0, breaks="Python raises the error before the first operator has run")
def handler_is_no_exception(x):
    try:
        fail(ValueError)
    except "text":
        return x
