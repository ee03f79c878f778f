"""Branches and loops that the elements of a tensor decide: one graph with an If or a Loop."""

import unittest

import wick
import wick.compiler
from worlds import in_both


class Branches:
    def setUp(self):
        wick.compiler.reset()

    def check(self, function, *given, breaks=0):
        """Compares with the plain function, twice, and counts graphs and breaks."""
        for backend in ("wick", "eager"):
            wick.compiler.reset()
            before = wick.compiler.counters.graph_count
            compiled = wick.compile(function, backend=backend)
            for _ in range(2):
                for each in given:
                    each = each if isinstance(each, tuple) else (each,)
                    self.same(compiled(*each), function(*each))
            graphs = wick.compiler.counters.graph_count - before
            explained = wick.compiler.explain(function)(*(given[0] if isinstance(given[0], tuple) else given[:1]))
            if breaks is not None:
                self.assertEqual(explained.graph_break_count, breaks, str(explained))
                if breaks == 0:
                    self.assertEqual(graphs, 1)

    def same(self, got, expected):
        self.assertIs(type(got), type(expected))
        if isinstance(got, (tuple, list)):
            self.assertEqual(len(got), len(expected))
            for a, b in zip(got, expected):
                self.same(a, b)
        elif hasattr(got, "shape"):
            self.assertEqual((got.shape, got.dtype, got.stride()), (expected.shape, expected.dtype, expected.stride()))
            self.assertEqual(got.requires_grad, expected.requires_grad)
            self.assertEqual(got.tolist(), expected.tolist())
        else:
            self.assertEqual(got, expected)

    def numbers(self, *values):
        return self.torch.tensor([float(v) for v in values])

    def test_both_sides_are_in_one_graph(self):
        def f(x):
            if x.sum() > 0:
                y = x * 2 + 1
            else:
                y = x - 3
            return y * x

        self.check(f, self.numbers(1, 2), self.numbers(-1, -2), self.numbers(0, 0))
        text = str(wick.compiler.explain(f)(self.numbers(1, 2)).graphs[0])
        self.assertIn("prim::If", text)

    def test_a_side_may_leave_all_as_it_is(self):
        def f(x, y):
            if (x > 0).all():
                y = y * 2
            return x + y

        self.check(f, (self.numbers(1, 2), self.numbers(3, 4)), (self.numbers(-1, 2), self.numbers(3, 4)))

    def test_an_input_with_other_sizes_is_looked_at_within(self):
        def f(c, x):
            k = 0
            while c < 3 and k < 2:
                k += 1
            return x[: x.shape[0] - 1] * 2 if c > 0 else x[: x.shape[0] - 1] + 1

        given = [(self.torch.tensor(float(c)), self.numbers(*range(n))) for c, n in ((1, 4), (1, 5), (-1, 6), (5, 3))]
        self.check(f, *given, breaks=None)

    def test_both_sides_return(self):
        def f(x):
            if x.mean() > 1:
                return x.sin(), x
            y = x * x
            if y.mean() > 0.5:
                return y.cos(), x
            return y + 1, x

        self.check(f, self.numbers(1, 2), self.numbers(0.9, 0.9), self.numbers(0.1, 0.2))

    def test_conditions_are_joined(self):
        torch = self.torch

        def f(x, y):
            if x.sum() > 0 and y.sum() > 0:
                z = x + y
            elif not (x.sum() > 0) or y.sum() > 5:
                z = x - y
            else:
                z = x * y
            return torch.relu(z) if z.sum() > 0 else -z

        signs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
        self.check(f, *[(self.numbers(a, 2 * a), self.numbers(b, 3 * b)) for a, b in signs], breaks=None)

    def test_values_of_expressions(self):
        def f(x):
            y = (x + 1 if x.sum() > 0 else x - 1) * 2
            return y, (y * 3 if y.max() > 5 else y * 4)

        self.check(f, self.numbers(1, 2), self.numbers(-1, 2), self.numbers(-5, 2))

    def test_functions_that_are_called_branch(self):
        def inner(x, k):
            if x.max() > k:
                return x / k
            return x * k

        def f(x):
            y = inner(x, 3.0)
            return inner(y, 2.0) + y

        self.check(f, self.numbers(1, 2), self.numbers(1, 7), self.numbers(1, 60))

    def test_continue_in_a_loop_over_numbers(self):
        def f(x):
            total = x
            for i in range(4):
                if total.sum() > 3 * i:
                    total = total + i
                    continue
                total = total * 2
            return total

        self.check(f, self.numbers(1, 2), self.numbers(-4, 1), self.numbers(0, 0.5))

    def test_gradients(self):
        def f(x, w):
            y = x * w
            if y.sum() > 0:
                y = y * y + w
            else:
                y = (y * x).exp()
            return y * 2

        compiled = wick.compile(f, fullgraph=True)
        for sign in (1, -1, 1):
            results = []
            for function in (f, compiled):
                x = self.numbers(1, 2).requires_grad_()
                w = self.numbers(sign, sign * 0.5).requires_grad_()
                out = function(x, w)
                out.sum().backward()
                results.append((out.detach(), x.grad, w.grad))
            self.same(results[0], results[1])

    def test_a_side_without_gradients_breaks(self):
        def f(x, w):
            if x.sum() > 0:
                y = x * w
            else:
                y = x + 1
            return y * 2

        def run(function, sign):
            w = self.numbers(3, 4).requires_grad_()
            out = function(self.numbers(sign, sign), w)
            if out.requires_grad:
                out.sum().backward()
            return out.detach(), out.requires_grad, w.grad if sign > 0 else None

        compiled = wick.compile(f)
        for sign in (1, -1, 1, -1):
            self.same(run(compiled, sign), run(f, sign))

    def test_which_tensor_it_is(self):
        def f(x):
            y = x
            if x.sum() > 0:
                y = x * 2
            return y

        for backend in ("wick", "eager"):
            compiled = wick.compile(f, backend=backend, fullgraph=True)
            for _ in range(2):
                positive, negative = self.numbers(1, 2), self.numbers(-1, -2)
                self.assertIsNot(compiled(positive), positive)
                self.assertIs(compiled(negative), negative)

    def test_which_result_it_is(self):
        def f(x):
            y = x + 1
            z = x * 2 if x.sum() > 0 else y
            return y, z

        compiled = wick.compile(f, fullgraph=True)
        for _ in range(2):
            y, z = compiled(self.numbers(1, 2))
            self.assertIsNot(y, z)
            y, z = compiled(self.numbers(-1, -2))
            self.assertIs(y, z)
            self.same((y, z), f(self.numbers(-1, -2)))

    def test_identity_inside(self):
        def f(x):
            y = x
            if x.sum() > 0:
                y = x * 2
            return (y is x), y + 1

        self.check(f, self.numbers(1, 2), self.numbers(-1, -2), breaks=None)

    def test_writes_to_what_may_be_the_input(self):
        def f(x):
            y = x
            if x.sum() > 0:
                y = x * 2
            y.add_(10)
            return x + 0, y + 0

        compiled = wick.compile(f)
        for sign in (1, -1, 1, -1):
            a, b = self.numbers(sign, 2 * sign), self.numbers(sign, 2 * sign)
            self.same(compiled(a), f(b))
            self.same(a, b)
            self.assertEqual(a._version, b._version)

    def test_sides_that_write(self):
        def f(x, y):
            if x.sum() > 0:
                y.add_(1)
            return x + y

        compiled = wick.compile(f)
        for sign in (1, -1, 1):
            a, b = self.numbers(3, 4), self.numbers(3, 4)
            self.same(compiled(self.numbers(sign, 0), a), f(self.numbers(sign, 0), b))
            self.same(a, b)

    def test_sides_that_do_more(self):
        seen = []

        def f(x, log):
            k = 1
            if x.sum() > 0:
                log.append("positive")
                seen.append(1)
                k = 2
            return x * k

        compiled = wick.compile(f)
        for sign in (1, -1, 1):
            a, b = [], []
            self.same(compiled(self.numbers(sign, 0), a), f(self.numbers(sign, 0), b))
            self.assertEqual(a, b)
        self.assertEqual(len(seen), 4)

    def test_sides_that_raise(self):
        def f(x):
            if x.sum() < 0:
                raise ValueError("negative")
            return x.sqrt()

        compiled = wick.compile(f)
        for _ in range(2):
            self.same(compiled(self.numbers(4, 9)), self.numbers(2, 3))
            with self.assertRaisesRegex(ValueError, "negative"):
                compiled(self.numbers(-4, 9 - 6))

    def test_iterators_are_not_shared_by_sides(self):
        def f(x):
            numbers = iter([1, 2, 3, 4])
            if x.sum() > 0:
                x = x * next(numbers)
            return x + next(numbers)

        compiled = wick.compile(f)
        for sign in (1, -1, 1):
            self.same(compiled(self.numbers(sign, 0)), f(self.numbers(sign, 0)))

    def test_break_in_a_loop(self):
        def f(x):
            for _ in range(6):
                x = x * 2
                if x.sum() > 20:
                    break
            return x

        self.check(f, self.numbers(1, 2), self.numbers(5, 20), self.numbers(0, 0), self.numbers(0.2, 0.2))

    def test_the_number_of_iterations_ends_the_graph(self):
        def f(x):
            for i in range(6):
                x = x * 2
                if x.sum() > 20:
                    break
            return x, i

        self.check(f, self.numbers(1, 2), self.numbers(5, 20), self.numbers(0, 0), breaks=None)

    def test_return_and_continue_in_loops(self):
        def f(x, steps):
            for step in steps:
                if (x > 50).any():
                    return x - step
                if x.min() < 0:
                    x = x * x
                    continue
                x = x + step
            else:
                x = x / 2
            return x * 3

        for steps in ([1, 2, 3], (4.5,), {7: "a", 8: "b"}, "", range(2, 5)):
            self.check(lambda x, steps=steps: f(x, steps), self.numbers(1, 2), self.numbers(-5, 9), self.numbers(-9, 2), self.numbers(60, 1),
                       breaks=None)

    def test_break_in_an_inner_loop(self):
        def f(x):
            total = x
            for i in (1, 2, 3):
                for scale in [2.0, 3.0]:
                    total = total * scale
                    if total.sum() > 40 * i:
                        break
                total = total - i
            return total

        self.check(f, self.numbers(1, 2), self.numbers(9, 2), self.numbers(0.1, 0.1), self.numbers(100, 1))

    def test_gradients_through_an_early_exit(self):
        weights = [self.numbers(k, k + 1).requires_grad_() for k in range(3)]

        def f(x):
            for weight in weights:
                x = x * weight + 1
                if x.sum() > 6:
                    return x * 2
            return x - 1

        compiled = wick.compile(f, fullgraph=True)
        for numbers in ((1, 2), (9, 9), (-3, -1), (0, 0.5)):
            found = []
            for function in (f, compiled):
                for weight in weights:
                    weight.grad = None
                result = function(self.numbers(*numbers))
                result.sum().backward()
                found.append((result.tolist(), [None if w.grad is None else w.grad.tolist() for w in weights]))
            # A weight that a run does not come to has no gradient.
            self.assertEqual(found[0], found[1])

    def test_iterators_that_others_hold(self):
        def f(x, numbers):
            kept = iter(numbers)
            for number in kept:
                x = x + number
                if x.sum() > 10:
                    break
            return x, [each * 2 for each in kept]

        compiled = wick.compile(f)
        for numbers in ((1, 2), (9, 9), (-30, 1)):
            for _ in range(2):
                found = compiled(self.numbers(*numbers), [1, 2, 3, 4])
                expected = f(self.numbers(*numbers), [1, 2, 3, 4])
                self.same(found[0], expected[0])
                self.assertEqual(found[1], expected[1])

    def test_a_list_that_grows_within(self):
        def f(x):
            todo = [1, 2]
            for number in todo:
                x = x + number
                if x.sum() > 10:
                    break
                if len(todo) < 5:
                    todo.append(number * 2)
            return x

        self.check(f, self.numbers(1, 2), self.numbers(9, 9), self.numbers(-30, 1), breaks=None)

    def test_long_loops(self):
        def f(x):
            for _ in range(100):
                x = x * 1.5
                if x.max() > 1000:
                    break
            return x

        self.check(f, self.numbers(1, 2), self.numbers(900, 9), self.numbers(0, 0), breaks=None)

    def test_tuples(self):
        def f(x):
            if x.sum() > 0:
                pair = x + 1, x + 2
            else:
                pair = x - 1, x - 2
            a, b = pair
            return a * b, pair

        self.check(f, self.numbers(1, 2), self.numbers(-1, -2))

    def test_a_condition_of_several_elements_raises(self):
        def f(x):
            if x > 0:
                return x
            return -x

        for function in (f, wick.compile(f)):
            with self.assertRaises(RuntimeError):
                function(self.numbers(1, 2))

    def test_random_numbers(self):
        torch = self.torch

        def f(x):
            if x.sum() > 0:
                y = x + torch.rand(2)
            else:
                y = x * torch.rand(2) * torch.rand(2)
            return y + torch.rand(2)

        compiled = wick.compile(f)
        for sign in (1, -1, 1):
            torch.manual_seed(3)
            expected = f(self.numbers(sign, 0)), torch.rand(1)
            torch.manual_seed(3)
            self.same((compiled(self.numbers(sign, 0)), torch.rand(1)), expected)




class WhileLoops:
    setUp, check, same, numbers = Branches.setUp, Branches.check, Branches.same, Branches.numbers

    def test_tensors_change(self):
        def f(x):
            count = x * 0
            while x.sum() > 1:
                x = x / 2
                count = count + 1
            return x * 3, count

        self.check(f, self.numbers(100, 2), self.numbers(0.1, 0.2), self.numbers(1, 1))
        text = str(wick.compiler.explain(f)(self.numbers(100, 2)).graphs[0])
        self.assertIn("prim::Loop", text)

    def test_gradients(self):
        def f(x, w):
            y = x * w
            while y.sum() < 50:
                y = y * w + x
            return y

        compiled = wick.compile(f, fullgraph=True)
        for start in (1, 30, 100):
            results = []
            for function in (f, compiled):
                x = self.numbers(start, start).requires_grad_()
                w = self.numbers(1.5, 2).requires_grad_()
                out = function(x, w) * 1
                out.sum().backward()
                results.append((out.detach(), x.grad, w.grad))
            self.same(results[0], results[1])

    def test_branches_within(self):
        def f(x):
            while x.abs().sum() > 1:
                if x.sum() > 0:
                    x = x - 1
                else:
                    x = x / 2
            return x + 0

        self.check(f, self.numbers(3, 2), self.numbers(-3, 0.5), self.numbers(0, 0))

    def test_loops_within(self):
        def f(x):
            y = x * 1
            while y.sum() < 100:
                z = y
                while z.sum() < 10:
                    z = z + 1
                y = y + z
            return y + x

        self.check(f, self.numbers(3, 2), self.numbers(200, 2), self.numbers(30, 2))

    def test_numbers_that_change_break(self):
        def f(x):
            steps = 0
            while x.sum() > 1:
                x = x / 2
                steps += 1
            return x * 3, steps

        self.check(f, self.numbers(100, 2), self.numbers(0.1, 0.2), breaks=None)

    def test_loops_that_count_are_unrolled(self):
        def tensor_first(x):
            steps = 0
            while x.sum() > 1 and steps < 6:
                x = x / 2
                steps += 1
            return x * 3

        def number_first(x):
            steps = 0
            while steps < 6 and x.sum() > 1:
                steps += 1
                x = x / steps
            return x * 3

        def from_within(x):
            left = 5
            while True:
                x = x / 2
                left -= 1
                if x.sum() < 1 or left == 0:
                    break
                x = x + 0.1
            return x

        def returns(x):
            step = 0
            while step < 4:
                step += 1
                if x.sum() > 50:
                    return x - step
                x = x * step
            return x

        given = [self.numbers(a, b) for a, b in ((100, 2), (1000, 2), (0.1, 0.2), (1, 1), (3, 2))]
        for function in (tensor_first, number_first, from_within, returns):
            with self.subTest(function=function.__name__):
                self.check(function, *given)

    def test_gradients_of_loops_that_count(self):
        def f(x, w):
            step = 0
            while step < 5 and x.sum() < 50:
                x = x * w + step
                step += 1
            return x * 2

        compiled = wick.compile(f, fullgraph=True)
        for start in (1, 10, 100):
            results = []
            for function in (f, compiled):
                x, w = self.numbers(start, 2).requires_grad_(), self.numbers(1.5, 2).requires_grad_()
                out = function(x, w)
                out.sum().backward()
                results.append((out.detach(), x.grad, w.grad))
            self.same((results[0][0], results[0][1]), (results[1][0], results[1][1]))

    def test_loops_that_count_too_far(self):
        def f(x):
            steps = 0
            while x.sum() > 1 and steps < 100:
                x = x / 1.5
                steps += 1
            return x * 3

        self.check(f, self.numbers(100, 2), self.numbers(0.1, 0.2), breaks=None)

    def test_a_counter_within_an_iteration(self):
        def f(x):
            while x.sum() > 1:
                for i in range(2):
                    x = x / 2 - i
                i = 5
                x = x - i
            return x + 0

        self.check(f, self.numbers(100, 2), self.numbers(0.1, 0.2))
        self.assertIn("prim::Loop", str(wick.compiler.explain(f)(self.numbers(100, 2)).graphs[0]))

    def test_leaving_from_within(self):
        def breaks(x):
            while True:
                x = x / 2
                if x.sum() < 1:
                    break
                x = x - 0.1
            return x * 3

        def returns(x):
            guess = x / 2
            while True:
                better = 0.5 * (guess + x / guess)
                if (better - guess).abs().max() < 1e-5:
                    return better
                guess = better

        for function in (breaks, returns):
            with self.subTest(function=function.__name__):
                self.check(function, self.numbers(100, 2), self.numbers(0.1, 0.2), self.numbers(9, 4))
                self.assertIn("prim::Loop", str(wick.compiler.explain(function)(self.numbers(100, 2)).graphs[0]))

    def test_leaving_in_two_places_breaks(self):
        def f(x):
            while True:
                x = x / 2
                if x.sum() < 1:
                    break
                x = x - 0.1
                if x.min() < 0.2:
                    break
            return x

        self.check(f, self.numbers(100, 2), self.numbers(0.1, 0.2), breaks=None)

    def test_shapes_that_change_break(self):
        torch = self.torch

        def f(x):
            while x.sum() < 10:
                x = torch.cat([x, x])
            return x

        self.check(f, self.numbers(3, 2), self.numbers(30, 2), breaks=None)


class SidesThatRaise:
    """A graph supposes that a branch does not go where the program always raises, and runs plainly where it does."""

    def setUp(self):
        wick.compiler.reset()

    def numbers(self, *values):
        return self.torch.tensor([float(v) for v in values])

    def outcome(self, function, *arguments):
        self.torch.manual_seed(3)
        try:
            result = function(*arguments)
            text = [each.tolist() for each in result] if isinstance(result, tuple) else result.tolist()
        except Exception as error:
            text = (type(error), str(error))
        return text, self.torch.rand(1).item()

    def compare(self, function, calls, breaks=0):
        """Calls both sides with the numbers in turn; returns the compiled function."""
        self.assertEqual(wick.compiler.explain(function)(self.numbers(*calls[0])).graph_break_count, breaks)
        wick.compiler.reset()
        compiled = wick.compile(function)
        for numbers in calls:
            mine, its = self.numbers(*numbers), self.numbers(*numbers)
            self.assertEqual(self.outcome(compiled, mine), self.outcome(function, its))
            self.assertEqual(mine.tolist(), its.tolist())
        return compiled

    def test_exceptions_and_assertions(self):
        def f(x):
            if (x < 0).any():
                raise ValueError(f"negative: {x.tolist()}")
            assert x.sum() < 100, "too large"
            return x.sqrt()

        self.compare(f, [(1, 4), (9, 4), (-1, 4), (1, 200), (-3, 200), (4, 9)])
        before = wick.compiler.counters.graph_count
        wick.compile(f, fullgraph=True)(self.numbers(1, 4))
        self.assertEqual(wick.compiler.counters.graph_count, before + 1)

    def test_the_program_catches_it(self):
        seen = []

        def root(x):
            if x.min() < 0:
                seen.append("negative")
                raise ValueError("negative")
            return x.sqrt()

        def f(x):
            try:
                return root(x) + 1
            except ValueError:
                return x * 0

        self.compare(f, [(1, 4), (-1, 4), (9, 4), (-9, 4)])
        self.assertEqual(seen, ["negative"] * 4)

    def test_changes_before_it_are_made(self):
        log = []

        def f(x):
            log.append(len(log))
            y = x + 1
            if not (y > 0).all():
                log.append("raises")
                raise RuntimeError("not positive")
            log.append("done")
            return y

        compiled = wick.compile(f)
        for numbers in ((1, 2), (3, 4), (-5, 1), (1, 1)):
            lists = []
            for function in (f, compiled):
                log.clear()
                self.outcome(function, self.numbers(*numbers))
                lists.append(list(log))
            self.assertEqual(lists[0], lists[1])

    def test_random_numbers_are_drawn_once(self):
        torch = self.torch

        def f(x):
            y = x + torch.rand(2)
            if y.sum() > 50:
                raise ValueError(y.tolist())
            return y * torch.rand(2)

        self.compare(f, [(1, 2), (3, 4), (100, 2), (3, 5)])

    def test_a_later_operator_fails(self):
        torch = self.torch

        def f(x):
            if x.min() < 0:
                raise KeyError("negative")
            return torch.arange(4.0)[x.to(torch.int64)]

        self.compare(f, [(1, 2), (3, 0), (-9, 2), (3, 1)])

    def test_writes_end_the_graph_before_it(self):
        def f(x):
            x.add_(1)
            if x.sum() > 100:
                raise ValueError("large")
            x.mul_(2)
            return x + 1

        self.compare(f, [(1, 2), (3, 4), (200, 1), (1, 1)], breaks=1)

    def test_within_a_side(self):
        def f(x):
            if x.sum() > 0:
                assert x.max() < 100
                return x * 2
            return x - 1

        self.compare(f, [(1, 2), (-3, 1), (200, 1), (4, 1)], breaks=1)

    def test_loops(self):
        def f(x):
            for i in range(3):
                x = x * 2
                if x.max() > 1000:
                    raise OverflowError(i)
            return x

        self.compare(f, [(1, 2), (-3, 1), (200, 1), (300, 1), (900, 1), (4, 1)])

    def test_open_sizes(self):
        def f(x):
            assert x.sum() < 100
            return x.reshape(-1, 2).sum(0) / x.shape[0]

        self.compare(f, [(1, 2), (3, 4, 5, 6), tuple(range(8)), (1, 2, 3, 400), (1, 2, 3, 4, 5, 6)])

    def test_wrong_again_and_again(self):
        def f(x):
            if x.sum() > 0:
                raise ValueError("positive")
            return x * 2

        before = wick.compiler.counters.graph_count
        compiled = self.compare(f, [(-3, 1)] + [(1, 2)] * 12 + [(-1, -2), (1, 3), (-3, -4)])
        self.assertEqual(self.outcome(compiled, self.numbers(-5, 1))[0], [-10, 2])
        self.assertLess(wick.compiler.counters.graph_count - before, 10)

    def test_gradients(self):
        def f(x):
            y = x * x
            if y.max() > 1000:
                raise ValueError("large")
            return y.sum()

        compiled = wick.compile(f, fullgraph=True)
        for numbers in ((1, 2), (3, 4)):
            x = self.numbers(*numbers).requires_grad_()
            compiled(x).backward()
            self.assertEqual(x.grad.tolist(), [2 * number for number in numbers])
        with self.assertRaisesRegex(ValueError, "large"):
            compiled(self.numbers(100, 1).requires_grad_())


for kind in in_both(Branches) + in_both(WhileLoops) + in_both(SidesThatRaise):
    globals()[kind.__name__] = kind
del Branches, WhileLoops, SidesThatRaise, kind

if __name__ == "__main__":
    unittest.main()
