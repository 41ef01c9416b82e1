"""Every small fault that can be put into a source, and a draw of some of them."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
EQUIVALENTS = Path(__file__).with_name("equivalents.txt")

_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"), ast.Mod: ("%", "+"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"),
}  # fmt: skip
#: File, line without and with a fault.
Key = tuple[str, str, str]

#: Functions whose answer does not depend on the order of what they are given.
_SYMMETRIC = re.compile(
    r"(min|max|f\.(least|greatest)|np\.(minimum|maximum|intersect1d|union1d|array_equal)|math\.gcd)"
)

_BOOLEAN = {ast.And: ("and", "or"), ast.Or: ("or", "and")}


@dataclass(frozen=True)
class Fault:
    """One changed place of a source.

    file : from the top of the checkout. function : first line of the innermost function around the
    place, as of its code; 0 for none. start, end : bytes of the file that `new` replaces. line : its number.
    before, after : the changed line, or lines, without and with the fault.
    """

    file: str
    kind: str
    function: int
    line: int
    start: int
    end: int
    new: bytes
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}\n    - {self.before}\n    + {self.after}"

    def changed(self) -> bytes:
        """Return the source with the fault."""
        data = (ROOT / self.file).read_bytes()
        return data[: self.start] + self.new + data[self.end :]

    def can_run(self) -> bool:
        """Return whether the source with the fault is Python that differs."""
        try:
            changed = ast.dump(ast.parse(self.changed()))
        except SyntaxError:
            return False
        return changed != ast.dump(ast.parse((ROOT / self.file).read_bytes()))

    @property
    def keys(self) -> set[Key]:
        """What names a fault, or all faults of its line, in its file or in any."""
        files = (self.file, "*")
        return {(file, self.before, after) for file in files for after in (self.after, "*")}


def list_faults(file: str) -> list[Fault]:
    """Return all faults of a file, in the order of their places."""
    return sorted(_Source(file).faults, key=lambda each: (each.start, each.end, each.new))


def all_faults() -> list[Fault]:
    """Return the faults of all sources, but for those that are known to change no answer."""
    equivalents = read_equivalents()
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "lshdup").rglob("*.py"))
    faults = (fault for file in files for fault in list_faults(file))
    return [fault for fault in faults if not equivalents.keys() & fault.keys]


def draw(faults: Iterable[Fault], n: int, seed: str) -> list[Fault]:
    """Return n faults, as many of one kind as of another, drawn by a seed: the same every time."""
    ranks, met = {}, Counter[tuple[str, ...]]()
    for fault in sorted(faults, key=lambda each: (each.file, each.start, each.kind, each.new)):
        # Without the number of the line, which changes with what stands above it.
        words = fault.file, fault.kind, fault.before, fault.after
        met[words] += 1
        ranks[fault] = sha256("\n".join([seed, str(met[words]), *words]).encode()).digest()
    kinds = defaultdict[str, list[Fault]](list)
    for fault in sorted(ranks, key=ranks.__getitem__):
        kinds[fault.kind].append(fault)
    turns = chain.from_iterable(zip_longest(*(kinds[kind] for kind in sorted(kinds))))
    return list(islice((fault for fault in turns if fault and fault.can_run()), n))


def read_equivalents() -> dict[Key, str]:
    """Return the faults that change no answer, and the reasons."""
    found = {}
    for block in EQUIVALENTS.read_text().strip().split("\n\n")[1:]:
        file, before, after, *reason = block.split("\n")
        found[file, before[2:], after[2:]] = " ".join(reason)
    return found


class _Source:
    """The faults of one file."""

    def __init__(self, file: str) -> None:
        self.file, self.data = file, (ROOT / file).read_bytes()
        self.faults: list[Fault] = []
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._visit(ast.parse(self.data), 0)

    def _visit(self, node: ast.AST, function: int) -> None:
        if isinstance(node, ast.FunctionDef):
            function = min(each.lineno for each in (node, *node.decorator_list))
            all_ = node.args
            named = [*all_.posonlyargs, *all_.args][-len(all_.defaults) :] if all_.defaults else []
            keywords = zip(all_.kwonlyargs, all_.kw_defaults, strict=True)
            for parameter, default in [*zip(named, all_.defaults, strict=True), *keywords]:
                if default is None or parameter.arg == "jobs":  # threads change no answer
                    continue
                for _, place, new in self._faults_at(default):
                    self._add("default", 0, *place, new)
        if isinstance(node, ast.keyword) and node.arg == "strict":  # lengths that are equal
            return
        for kind, place, new in self._faults_at(node):
            self._add(kind, function, *place, new)
        for child in _children(node):
            self._visit(child, function)

    def _add(self, kind: str, function: int, start: int, end: int, new: bytes) -> None:
        first = self.data.rfind(b"\n", 0, start) + 1
        last = self.data.find(b"\n", end)
        lines = self.data[first:last], self.data[first:start] + new + self.data[end:last]
        before, after = (" ".join(each.decode().split()) for each in lines)
        line = self.data.count(b"\n", 0, start) + 1
        self.faults.append(Fault(self.file, kind, function, line, start, end, new, before, after))

    def _faults_at(self, node: ast.AST) -> Iterator[tuple[str, tuple[int, int], bytes]]:
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                for at, operator in enumerate(node.ops):
                    words = _COMPARISONS[type(operator)]
                    yield from self._between("comparison", operands[at], operands[at + 1], words)
            case ast.BoolOp():
                yield from self._between("and/or", *node.values[:2], _BOOLEAN[type(node.op)])
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                words = _ARITHMETIC[type(node.op)]
                yield from self._between("arithmetic", node.left, node.right, words)
            case ast.UnaryOp(op=ast.Not()):
                yield "not", self._place(node), self._text(node.operand)
            case ast.Constant(value=bool()):
                yield "constant", self._place(node), str(not node.value).encode()
            case ast.Constant(value=int() | float()):
                yield "constant", self._place(node), repr(node.value + 1).encode()
            case ast.If() | ast.IfExp():
                test = b"not (" + self._text(node.test) + b")"
                yield "condition", self._place(node.test), test
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Delete():
                yield "statement removed", self._place(node), b"pass"
            case ast.Continue():
                yield "statement", self._place(node), b"break"
            case ast.Break():
                yield "statement", self._place(node), b"continue"
            case ast.Call(args=[first, second, *_]) if not _is_symmetric(node.func):
                texts = self._text(first), self._text(second)
                if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                    start, end = self._place(first)[0], self._place(second)[1]
                    middle = self.data[self._place(first)[1] : self._place(second)[0]]
                    yield "arguments swapped", (start, end), texts[1] + middle + texts[0]
            case ast.ExceptHandler():
                start, end = self._place(node.body[0])[0], self._place(node.body[-1])[1]
                if self.data[start:end] != b"raise":
                    yield "handler", (start, end), b"raise"

    def _between(
        self, kind: str, left: ast.expr, right: ast.expr, words: tuple[str, str]
    ) -> Iterator[tuple[str, tuple[int, int], bytes]]:
        """The other operator, which stands somewhere between two operands."""
        start, end = self._place(left)[1], self._place(right)[0]
        old = re.search(re.escape(words[0]).replace(r"\ ", r"\s+").encode(), self.data[start:end])
        if old is not None:
            yield kind, (start + old.start(), start + old.end()), words[1].encode()

    def _place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> bytes:
        return self.data[slice(*self._place(node))]


def _is_symmetric(function: ast.expr) -> bool:
    return _SYMMETRIC.fullmatch(ast.unparse(function)) is not None


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are run and hold more than words for people."""
    if isinstance(node, ast.Assert | ast.JoinedStr):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.arguments):  # defaults are a kind of their own
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "type_comment"):
            children = value if isinstance(value, list) else [value]
            yield from (child for child in children if isinstance(child, ast.AST))
