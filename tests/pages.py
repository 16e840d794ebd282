"""Read a page as a browser would: its elements, their attributes and its text."""

import re
from html.parser import HTMLParser

BLOCK = re.compile(r"^```(python|console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
VOID = {"meta", "br"}
TEXT = {
    *("html", "head", "meta", "title", "style", "body", "header", "footer", "section", "div"),
    *("h1", "h2", "p", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("code", "span", "bdi", "br"),
}
LOADING = {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background"}


def blocks(path):
    """The blocks of code of a page, each with its kind."""
    return BLOCK.findall(path.read_text())


class Page(HTMLParser):
    """Elements and text of a page; closes what it opens, or the test fails."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.inside, self.text = set(), [], [], ""
        self.feed(html)
        self.close()
        assert self.inside == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.inside.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.inside.pop()

    def handle_endtag(self, tag):
        assert self.inside.pop() == tag

    def handle_data(self, data):
        if "style" not in self.inside:
            self.text += data

    def check(self, tags=frozenset(TEXT)):
        """Nothing is loaded, nothing runs, and no other elements are there."""
        assert self.tags <= tags, self.tags - tags
        names = {name for name, _ in self.attributes}
        assert not names & LOADING
        assert not {name for name in names if name.startswith("on")}
        assert not [value for _, value in self.attributes if "url(" in value or "://" in value]
