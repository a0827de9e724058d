"""An answer as Markdown: tables, code, mathematics; hostile Markdown does nothing; a switch shows the plain text."""

from __future__ import annotations

import pytest

from viewer_traces import plain

WELL_FORMED = r"""# Sum

First *line*
second line with `code`, 5 < 6 & H<sub>2</sub>O

| n | square |
|--:|:------|
| 2 | \(2^2\) |

```python
def square(n):
    return n * n  # a comment
```

- [x] done

$$\boxed{\int_0^1 x\,dx = \begin{pmatrix} 1 \\ 2 \end{pmatrix}}$$

It costs $5 or $10, and $x_1$ is a number. [A page](https://example.org/a?b=c&d=e)
"""
HOSTILE = """<script>document.title = "taken"</script>

<img src="https://other.example/x.png" onerror="document.title = 'taken'">

![a cat](https://other.example/cat.png "title") ![local](/api/pool)

[one](javascript:alert(1)) [two](JaVa&#x09;Script:alert(1)) [three](data:text/html,<script>alert(1)</script>)
[four](/api/traces) [five](//other.example/) <a href="javascript:alert(1)" onclick="alert(1)">six</a>

<div style="position:fixed;inset:0" class="brand" id="app">over the page</div><style>* { display: none }</style>

<b onmouseover="alert(1)">bold</b> <svg><animate onbegin=alert(1) attributeName=x></svg>

<math><mtext></p><style><img src=x onerror=alert(1)>

turned &#x202e;gnp.exe and &#8203;hidden \u202eraw

$\\href{javascript:alert(1)}{x}$ $\\char"202E$ $\\text{<img src=x onerror=alert(1)>}$ $\\color{red}{red}$
<form action="/api/ask"><input name="x"><button>send</button></form> <iframe src="/"></iframe>

```<img src=x onerror=alert(1)>
</code></pre><script>alert(1)</script>
```
"""

EXHAUSTING = {
    "quotes": "> " * 2_000,
    "quotes in lines": ("> " * 2_400 + "\n") * 20,
    "marks": ("*a_" * 1_600 + "\n") * 20,
    "paragraphs": ("*a_" * 1_600 + "\n\n") * 20,
    "fractions": ("$$" + "\\frac{a}{b}" * 440 + "$$\n\n") * 20,
    "emphasis": "*a_" * 30_000,
    "lines": "*a_\n" * 20_000,
    "lists": "- " * 2_000,
    "maths": ("\\(" * 2_000 + "\n") * 20,
    "dollars": ("$" * 4_000 + "\n") * 20,
    "brackets": "[a\n" * 30_000,
}
USUAL = ("quotes", "fractions", "emphasis", "lists")
"""Those that are not for the night."""


def test_tables_code_and_mathematics_are_formatted_on_a_phone(trace_server, phone) -> None:
    powers = " + ".join(f"{n * n} a^{{{n}}} b^{{{12 - n}}}" for n in range(12))
    wide = f"\n\nIt is \\(({powers})^2\\) and, in a list:\n\n- $\\frac{{{powers}}}{{2}}$, too\n"
    page = trace_server.show(
        phone, plain(WELL_FORMED + wide + "\n| wide |" + "column |" * 40 + "\n|-" + "|-" * 40)
    )
    page.wait_for_selector(".answer .hljs-keyword:has-text('def')")
    page.wait_for_selector(".answer math .boxed mtable")
    answer = page.locator(".answer")
    assert answer.locator("h3").inner_text() == "Sum"
    assert answer.locator("td math msup").count() == 1
    assert answer.locator("math").count() == 5
    assert "It costs $5 or $10" in answer.inner_text()
    assert "First line\nsecond line with code, 5 < 6 & H" in answer.inner_text()
    assert answer.locator("sub").inner_text() == "2"
    assert "☑ done" in answer.inner_text()
    link = answer.locator("a")
    assert link.get_attribute("href") == "https://example.org/a?b=c&d=e"
    assert (link.get_attribute("rel"), link.get_attribute("target")) == ("noopener noreferrer", "_blank")
    assert phone.overflow == 0


def test_a_switch_shows_the_plain_text_and_the_formatted_one_again(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, plain(WELL_FORMED))
    page.click("text=plain text")
    assert page.locator(".answer pre").text_content().strip() == WELL_FORMED.strip()
    page.click("text=plain text")
    page.wait_for_selector(".answer h3")


def test_hostile_markdown_is_shown_and_does_nothing(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, plain(HOSTILE))
    page.wait_for_selector(".answer math")
    answer = page.locator(".answer")
    forbidden = (
        "script, style, img, svg, iframe, form, input, button, [style], [id], [onclick], [onerror], .brand"
    )
    assert answer.locator(forbidden).count() == 0
    hrefs = [link.get_attribute("href") for link in answer.locator("a[href]").all()]
    assert hrefs == ["https://other.example/cat.png"]
    text = answer.text_content()
    assert '<script>document.title = "taken"</script>' in text
    assert "image: a cat" in text
    assert "turned ⟨U+202E⟩gnp.exe and ⟨U+200B⟩hidden ⟨U+202E⟩raw" in text
    assert not {"\u202e", "\u200b"} & set(text)
    assert page.title() == "Traces · Podium"
    assert opened_once.overflow == 0


def test_no_other_script_can_make_a_policy_and_no_text_becomes_html(trace_server, opened_once) -> None:
    page = trace_server.show(opened_once, plain("*Yes.*"))
    page.wait_for_selector(".answer em")
    refused = page.evaluate(
        """() => [
            () => trustedTypes.createPolicy("other", { createHTML: (text) => text }),
            () => trustedTypes.createPolicy("dompurify", { createHTML: (text) => text }),
            () => (document.createElement("p").innerHTML = "<b>x</b>"),
        ].map((attempt) => { try { attempt(); return "done"; } catch (error) { return error.name; } })"""
    )
    assert refused == ["TypeError"] * 3
    opened_once.faults.clear()  # The browser reports the three attempts.


@pytest.mark.parametrize(
    "name", [name if name in USUAL else pytest.param(name, marks=pytest.mark.nightly) for name in EXHAUSTING]
)
def test_a_text_that_would_exhaust_the_parser_is_shown_all_the_same(
    trace_server, opened_once, name: str
) -> None:
    page = trace_server.show(opened_once, plain(EXHAUSTING[name] + f"the end of {name}"))
    assert f"the end of {name}" in page.locator(".answer").text_content()
