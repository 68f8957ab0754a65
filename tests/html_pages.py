"""Parse a page and check that its tags are balanced."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link"}


class Balanced(HTMLParser):
    """Every opened element is closed in order; texts are collected."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def parsed(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return parser
