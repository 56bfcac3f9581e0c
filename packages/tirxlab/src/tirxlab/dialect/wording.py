"""TVM's and Python's messages in the course's words. A table of both: what is not in it stays as it is."""

import re
from collections.abc import Iterator

_MAX_MESSAGE = 600
NO_THREADS = "kernel has no thread launch parameters"
NO_VALUE = "an instruction gives no value: write it as a statement of its own"
_LIST = "a list is needed here, not a number: for example ptr_to([0])"
_SEVERAL = (
    "these are several values: give each a name of its own, as in `cbx, cby = Tx.cta_id([2, 1], parent=..)`, "
    "or wrap what only the builder needs in Tx.meta_var(...)"
)
# Part of a message of TVM, often the name of an internal check -> what it means for the student.
_EXPLAINED = {
    "MatchesCode(DLDataTypeCode::kDLBool)": "`not` takes a condition, and this is a number: "
    "write `Tx.ptx.elect_sync() == 0`; a phase flips with `phase = phase ^ 1`",
    "MatchesCode(DLDataTypeCode::kDLFloat,": "this compares or computes with a fraction where a whole "
    "number is meant: `/` always gives one, write `//`",
    "unhashable type: 'dict'": "options in a dictionary are passed with two stars: `**tma`",
    "'float' object cannot be interpreted as an integer": "a whole number is needed, and this is a fraction: "
    "`/` always gives one, write `//`",
    "Cannot use and / or / not operator to Expr": "a Python function decides here (`if`, `and`, `or`, `not`, "
    "min, max) by a value that only the GPU knows: write Tx.if_then_else, Tx.And, Tx.Or or Tx.min",
    "For nodes require a scalar": "range() takes whole numbers, and this is a fraction: "
    "`/` always gives one, write `//`",
    "inference the type. value=(": _SEVERAL,
    "inference the type. value=[": _SEVERAL,
    "Cannot automatically inference the type": "this value has no type on the GPU: a variable of a kernel "
    "holds a number or an expression of numbers; wrap what only the builder needs in Tx.meta_var(...)",
    "object has no attribute 'expr_ty'": "this compares or computes with something that is not a number",
    "Mismatched type on argument": "an argument is not a number or an expression of numbers (a list, "
    "a string, None, or a function without its parentheses?)",
    "Function must be decorated": "a function inside a kernel needs a decorator: write @Tx.inline above it",
    "Invalid context expression in the with-statement": "this is not a scope: write it with parentheses, "
    "`with Tx.cta():` or `with Tx.thread():`",
    "unsupported operand type(s) for -: 'NoneType' and 'NoneType'": "a whole slice cannot be assigned or "
    "computed with: Tx.copy(dst, src) copies it, Tx.cast(dst, src) converts it",
    "'Var' object has no attribute 'wait'": "a buffer of barriers has no wait: "
    "write Tx.ptx.mbarrier.try_wait(bar.ptr_to([i]), phase); TMABar, TCGen05Bar and MBarrier have bar.wait",
    "'Var' object has no attribute 'arrive'": "a buffer of barriers has no arrive: "
    "write Tx.ptx.mbarrier.arrive(bar.ptr_to([i])); TMABar, TCGen05Bar and MBarrier have bar.arrive",
    " object has no attribute 'T'": "a buffer has no .T: Tx.gemm_async(C, A, B) takes B as stored and "
    "multiplies by its transpose",
    "Expect the for loop to be one of": "a loop goes over range(n), or Tx.unroll(n), not over a number",
    "gemm() missing 1 required positional argument: 'C'": "the tensor core's product is "
    'Tx.gemm_async(C, A, B, accum=.., dispatch="tcgen05", cta_group=..), not Tx.gemm',
    "A primitive-valued expression cannot be called": "this is a number: it takes no parentheses",
    "A primitive-valued expression cannot be indexed": "this is one number, with nothing to unpack or index: "
    "Tx.cta_id([m, n], parent=..) gives as many numbers as its list has extents",
    "Divide by zero": "this divides by 0 (`//` or `%`)",
    "TVM supports multiple types of integer divisions": "`/` of whole numbers gives a fraction: write `//`",
    "Invalid object type: ": "a number or an element of a buffer is needed here, not a function or a class",
    "is null in the binary operator": "None is not a value on the GPU",
    "Operand should be a Expr": "a buffer is not a number: A[i, j] is one of its elements",
    "with `const` first": "a buffer is not a number: A[i, j] is one of its elements",
    "Do not know how to bind type": "a scope has no `as`: write `with Tx.warp():`",
    "Cannot match type  vs": "a whole number is needed here, not text",
    "object of type 'Var' has no len()": "a buffer or a variable has no length here: a buffer's extents are "
    "Python's M, N, K; where a list is asked for, write it: ptr_to([0])",
    "Unexpected type for TIR Arg": 'the type of a parameter is Tx.Buffer((M, K), "float16")',
    "Type annotation required for function parameters": "each parameter of a kernel needs its type: "
    'A: Tx.Buffer((M, K), "float16")',
    NO_THREADS: "the kernel does not say how many threads a CTA has: "
    'wg_id = Tx.warpgroup_id([n], parent="cta"), or Tx.warp_id or Tx.thread_id with parent="cta"',
    "object of type 'BufferLoad' has no len()": _LIST,
    "object of type 'int' has no len()": _LIST,
}
_OPERANDS = r"unsupported operand type\(s\) for (\S+): "
# The same as regular expressions, for messages of which a part is kept.
_REWORDED = {
    r"(?:invalid syntax|unexpected indent) \(<unknown>, line \d+\)": "a line of this kernel begins "
    "further left than its def (a comment?): indent it",
    r"Visitor of AST node is not implemented: Import(From)?": "a kernel cannot import: "
    "put the import at the top of the file",
    r"data must be int or Expr, but got (\d+\.\d*)$": r"a whole number is needed, and this is \1, a "
    "fraction: `/` always gives one, write `//`",
    r"Visitor of AST node is not implemented: (\w+)": r"a kernel cannot contain this Python statement (\1)",
    r"\w+\.wait\(\) ((?:missing|takes|got) .*)": r"bar.wait(stage, phase): \1",
    r"\w+\.ptr_to\(\) ((?:missing|takes|got) .*)": r"bar.ptr_to([stage]): \1; a peer's is "
    "bar.remote_view(cta).ptr_to([stage])",
    r"\w+\.arrive\(\) (missing .* argument: 'stage')": r"bar.arrive(stage, ..): \1",
    r"'(?:TMABar|TCGen05Bar|MBarrier)' object is not subscriptable": "an array of barriers takes no [stage]: "
    "write bar.wait(stage, phase), bar.arrive(stage, ..) or bar.ptr_to([stage]); a peer's is "
    "bar.remote_view(cta).ptr_to([stage])",
    r"(?:float|int)\(\) argument must be .* not '": "int() and float() are for numbers that Python knows "
    'when it builds the kernel: on the GPU write Tx.cast(x, "int32")',
    r"^'[A-Z]\w+' object is not iterable": "this is one number, with nothing to unpack",
    r"The number of indices \[.*\] does not match the shape of the buffer (\(.*\))": r"a buffer of shape \1 "
    "takes as many indices as that has numbers, and this gives others",
    r"^'(\S+)' not supported between instances of": r"`\1` compares numbers, and one of these is none (a "
    "function, a list, text?)",
    r"unsupported operand type\(s\) for @:": "there is no `@` on the GPU: Tx.gemm_async multiplies tiles",
    _OPERANDS + r".*'NoneType'": r"`\1` computes with None: a name has no value here",
    r"bad operand type for (\w+)\(\): '(?:Var|BufferLoad)'": r"\1() is for numbers that Python knows when it "
    r"builds the kernel: on the GPU there is Tx.\1",
    r"unsupported operand type\(s\) for \*\* or pow\(\)": "there are no powers (`**`) on the GPU: multiply",
    _OPERANDS + r".*'str'": r"`\1` computes with text where a number is meant",
    _OPERANDS + r"('(BufferRegion|Var)' and .*|.* and '(BufferRegion|Var)')": r"`\1` works on "
    "numbers, and a buffer or a slice is none: A[i, j] is one",
    r"^'(?:[A-Z]\w+|int|float|str|tuple|list|dict)' object is not callable": "this is not a function: it "
    "takes no parentheses; a scope takes its condition in brackets",
    r"^(too many positional arguments|(?:missing a required|got an unexpected keyword) argument.*)$": "this "
    r"call does not fit the function's def: \1",
    r"^'function' object is not subscriptable": "a function takes its arguments in parentheses",
    r"^(copy|copy_async|cast|gemm_async|decl_buffer|alloc_local|address_of|local_scalar|unroll)\(\) (.*)": (
        r"Tx.\1: \2"
    ),
    r"^PoolAllocator\.(\w+)\(\) (.*)": r"pool.\1: \2",
    r"^'PoolAllocator' object has no attribute '(\w+)'": r"the pool has alloc, move_base_to and commit, "
    r"no \1",
    r"^(?:meta_var|MetaVar)\.__init__\(\) (missing|takes) .*": "Tx.meta_var(value) takes one value",
    r"of type T\.void": NO_VALUE,
    _OPERANDS + r".*'tuple'": r"`\1` works on numbers, and this is a tuple: does a comma end its definition?",
    _OPERANDS + r".*'Array'": r"`\1` works on one number, and this is several: "
    "unpack them",
    r"^'(?:Var|BufferLoad)' object has no attribute '(\w+)'": r"a number or a buffer of a kernel has no .\1",
    r"Parsing resulted in unexpected type <class '(?:[\w.]+\.)?(\w+)'>": r"this statement does nothing (it "
    r"gives a \1): a call needs parentheses",
    r"^(\w+_id)\(\) (missing .*)": r"Tx.\1(shape, parent=..): \2; the skeleton calls it once, at the top, "
    "and names the result",
    r"Variable (\w+) already defined in current scope": r"`\1` is already defined with another meaning: "
    "rename one of the two",
}


def short(error: BaseException) -> str:
    """TVM's message without its own location block, reworded where possible and cut to fit a screen."""
    text = str(error)
    if text.startswith("error: "):
        text = text[len("error: ") :].split("\n --> ")[0]
    text = text.split("\nStack trace")[0].strip() or type(error).__name__
    text = plain(text) or text
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE].rstrip() + " ..."


def plain(text: str) -> str | None:
    """What a message means; None if no table has it."""
    said = next((plain for check, plain in _EXPLAINED.items() if check in text), None)
    return next((found.expand(plain) for found, plain in _matches(said or text)), said)


def _matches(text: str) -> Iterator[tuple[re.Match, str]]:
    return ((found, plain) for form, plain in _REWORDED.items() for found in [re.search(form, text)] if found)
