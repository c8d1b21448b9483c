"""Writes text/: documents, and what other libraries make of them.

    python3 text.py

with tokenizers 0.23.3, beautifulsoup4 4.15.0, html5lib 1.1, NumPy 2.4.6 and safetensors 0.8.0.
kernels/src/text/golden_tests.rs compares every case exactly.
"""

import json
import pathlib
import random
from collections import Counter

import numpy as np
from bs4 import BeautifulSoup, CData, Comment, Doctype, NavigableString
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers

FOLDER = pathlib.Path(__file__).parent / "text"

# The rules of `html_to_text`, on the tree of html5lib.
DROPPED = set(
    "audio canvas datalist frameset iframe math noembed noframes noscript object script select "
    "style svg template textarea title video".split()
)
BLOCKS = set(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend "
    "li listing main menu nav ol optgroup option p plaintext pre search section summary table "
    "tbody tfoot thead tr ul xmp".split()
)
PREFORMATTED = {"listing", "plaintext", "pre", "xmp"}


def visible_text(html: str) -> str:
    pieces: list[str] = []

    def walk(node, is_preformatted: bool) -> None:
        for child in node.children:
            if isinstance(child, (Comment, Doctype, CData)):
                continue
            if isinstance(child, NavigableString):
                text = str(child)
                pieces.append(text if is_preformatted else text.replace("\n", " "))
            elif child.name not in DROPPED:
                mark = "\n" if child.name in BLOCKS else " " if child.name in ("td", "th") else ""
                pieces.append(mark)
                walk(child, is_preformatted or child.name in PREFORMATTED)
                pieces.append(mark)

    walk(BeautifulSoup(html, "html5lib"), False)
    spaces = str.maketrans("\t\f\r", "   ")
    lines = "".join(pieces).translate(spaces).split("\n")
    lines = [" ".join(word for word in line.split(" ") if word) for line in lines]
    return "\n".join(line for line in lines if line)


HTML = [
    "",
    "   \n\t ",
    "plain text, no tags",
    "<!DOCTYPE html><html><head><title>Title</title><style>p{color:red}</style></head>"
    "<body><h1>Heading</h1><p>One <b>bold</b>  word,\n a <a href='x'>link</a>.</p>"
    "<p>Two</p></body></html>",
    "<p>a<br>b<br/>c</p><hr><p>d",
    "<ul><li>one<li>two<li>three <em>four</em></ul>",
    "<table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>after",
    "<pre>line 1\n  line   2\n\nline 4</pre>tail",
    "caf&eacute; &amp; &lt;tags&gt; &#8364; &#x1F600; &nbsp;x &unknown; &copy",
    "<script>if (a < b) { document.write('<p>no</p>'); }</script>yes<noscript>no</noscript>",
    "<div>outer<svg><text>no</text><path d='M0 0'/></svg><math><mi>x</mi></math>end</div>",
    "<div><svg/>kept</div>",
    "<select><option>a</option><option>b</option></select>c<textarea>d<b>e</textarea>f",
    "a<!-- comment <p>not</p> -->b<![CDATA[ c ]]>d",
    "<template><p>no</p></template><video><p>no</p></video><object><p>no</p></object>ok",
    "<P CLASS=x>UPPER</P><DIV>case</DIV>",
    "<p>in<span>li</span>ne<i> i </i>x</p>",
    "<blockquote><div><section>deep</section></div></blockquote><footer>f</footer>",
    "<p>日本語 <ruby>漢</ruby>字</p><p dir=rtl>עברית</p>",
    "<iframe src=x><p>no</p></iframe><article>art</article><aside>as</aside>",
    "<p>unclosed <b>bold <i>both</p><p>next</i></b> done",
    "< p>not a tag</p> 1 < 2 && 3 > 2",
    "<a href=\"a>b\" title='<p>'>attribute</a>",
    "<dl><dt>term<dd>definition</dl><details><summary>s</summary>d</details>",
    "tabs\tand\fform\rfeeds\r\nend",
]

# Bytes, encoding, errors.
CHARACTERS = [
    (b"plain", "utf-8", "strict"),
    ("ünïcödé €😀".encode(), "utf-8", "strict"),
    (b"\xef\xbb\xbfmark", "utf-8", "strict"),
    (b"ab\xffcd", "utf-8", "strict"),
    (b"ab\xffcd\xe2\x82 \xf0\x9f\x98", "utf-8", "replace"),
    (b"\xed\xa0\x80 \xc0\xaf", "utf-8", "replace"),
    ("ünï€😀".encode("utf-16-le"), "utf-16-le", "strict"),
    ("ünï€😀".encode("utf-16-be"), "utf-16-be", "strict"),
    (b"\xff\xfea\0b\0", "utf-16-le", "strict"),
    (b"\xfe\xff\0a\0b", "utf-16-be", "strict"),
    (b"a\0\0\xd8b\0", "utf-16-le", "strict"),
    (b"a\0\0\xd8b\0", "utf-16-le", "replace"),
    (b"a\0\0\xdcb\0c", "utf-16-le", "replace"),
    (b"a\0b", "utf-16-le", "strict"),
    (bytes(range(256)), "latin-1", "strict"),
]


def decoded(data: bytes, encoding: str, errors: str) -> str | None:
    try:
        text = data.decode(encoding, errors)
    except UnicodeDecodeError:
        return None
    return text[1:] if encoding != "latin-1" and text.startswith("\ufeff") else text


def documents() -> list[str]:
    chance = random.Random(3)
    syllables = [a + b for a in "bcdfglmnprst" for b in ("a", "e", "i", "o", "un", "ar", "est")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(300)]
    words += ["für", "naïve", "日本", "語", "Привет", "مرحبا", "😀", "x2", "e=mc²", "½", "Ⅷ", "don't"]
    weights = [1 / (index + 1) for index in range(len(words))]

    gaps = [" "] * 8 + ["\n", "  ", ", ", ".\n\n", "\t", "'s ", " - "]

    def one() -> str:
        pieces = []
        for index, word in enumerate(chance.choices(words, weights, k=chance.randint(5, 60))):
            pieces.append(str(chance.randint(0, 99999)) if index % 11 == 7 else word)
            pieces.append(chance.choice(gaps))
        return "".join(pieces)

    return [one() for _ in range(400)]


HARD = [
    "",
    " ",
    "   three",
    "trailing   ",
    "\n\n\n",
    "a  b\u00a0c\u2003d\u3000e \u2028f\u0085g",
    "it's we're they've I'm you'll he'd 'S 'x '",
    "don't'll''s",
    "<|endoftext|>a<|endoftext|> b",
    "e\u0301 combining \u0915\u094d\u0937 marks",
    "①②③ ⅷ ½ 一二三 ٣٤ 𝟘𝟙 \U00010400",
    "\x00\x01\x7f\u200b\ufeff",
    "!?!?... ---- ____ $$$ §§ «»",
    "mixed123abc456 7.8e9 a_b-c/d",
    "x" * 300,
    " " * 70 + "y",
    "\ud7ff\ue000\uffff\U0010ffff",
]


def tokenizers(texts: list[str]) -> None:
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    byte_level.train_from_iterator(texts, trainer)
    byte_level.save(str(FOLDER / "byte_level.json"))

    prefixed = Tokenizer.from_str(byte_level.to_str())
    prefixed.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    prefixed.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    prefixed.enable_truncation(4)
    prefixed.enable_padding(length=9)
    prefixed.save(str(FOLDER / "prefixed.json"))

    # Its trainer gives another vocabulary each time.
    words = Counter(word for text in texts for word in text.lower().split() if word.isalpha())
    letters = sorted(set("".join(words)))
    tokens = ["[PAD]", "[UNK]", "[CLS]", *letters, *(f"##{letter}" for letter in letters)]
    tokens += [word for word, _ in words.most_common(150) if len(word) > 1]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    pieces = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.save(str(FOLDER / "word_piece.json"))


def token_cases(texts: list[str]) -> dict[str, list[list[list[int]]]]:
    cases = {}
    for name in ("byte_level", "prefixed", "word_piece"):
        tokenizer = Tokenizer.from_file(str(FOLDER / f"{name}.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        cases[name] = [
            [tokenizer.encode(text, add_special_tokens=special).ids for special in (False, True)]
            for text in texts
        ]
    return cases


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    texts = documents()
    tokenizers(texts)
    rows = Tokenizer.from_file(str(FOLDER / "byte_level.json")).get_vocab_size()
    table = np.random.default_rng(5).standard_normal((rows, 6)).astype(np.float32)
    table[0, :4] = [65519.0, 2.0**-24, -0.0, 2.0**-26]
    np.save(FOLDER / "table.npy", table)
    np.save(FOLDER / "table16.npy", table.astype(np.float16))
    save_file({"wte.weight": table}, FOLDER / "table.safetensors")
    cases = HARD + texts[:40]
    expected = {
        "html": [[html, visible_text(html)] for html in HTML],
        "characters": [
            [data.hex(), encoding, errors, decoded(data, encoding, errors)]
            for data, encoding, errors in CHARACTERS
        ],
        "texts": cases,
        "tokens": token_cases(cases),
    }
    text = json.dumps(expected, ensure_ascii=True, separators=(",", ":"))
    (FOLDER / "expected.json").write_text(text + "\n")


main()
