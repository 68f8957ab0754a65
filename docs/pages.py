"""Pages as they are built: names and commands in prose lead to their reference, and pictures have a dark form."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

_NAME = re.compile(r"(placet(?:\.\w+)+|[A-Z]\w*(?:\.\w+)?)(?:\(.*\))?")
_COMMAND = re.compile(r"placet ((?:simulate )?[a-z]+)\b.*")


class LinkedNames(SphinxPostTransform):
    """Code in prose that names something of the API, or a command, becomes a link to it."""

    default_priority = 900

    def run(self, **_: Any) -> None:
        places = _places(self.env)
        labels = self.env.domains["std"].anonlabels
        for code in list(self.document.findall(nodes.literal)):
            if isinstance(code.parent, nodes.reference | nodes.title):
                continue
            text = code.astext()
            if (named := _NAME.fullmatch(text)) and named[1] in places:
                docname, anchor = places[named[1]]
            elif (command := _COMMAND.fullmatch(text)) and (found := _command(labels, command[1])):
                docname, anchor = found
            else:
                continue
            builder = self.app.builder
            code.replace_self(make_refnode(builder, self.env.docname, docname, anchor, code.deepcopy(), text))


def _places(env: Any) -> dict[str, tuple[str, str]]:
    """Names of the API -> page and anchor: in full, and those of classes without the module if that is unique."""
    found = env.__dict__.get("placet_places")
    if found is None:
        objects = env.domains["py"].objects
        found = {name: (one.docname, one.node_id) for name, one in objects.items()}
        short: dict[str, set[tuple[str, str]]] = {}
        for name, place in list(found.items()):
            if class_ := re.search(r"\.([A-Z]\w*(?:\.\w+)?)$", name):
                short.setdefault(class_[1], set()).add(place)
        found |= {name: next(iter(own)) for name, own in short.items() if len(own) == 1}
        env.placet_places = found
    return found


def _command(labels: dict[str, tuple[str, str]], words: str) -> tuple[str, str] | None:
    for name in (words, words.split()[0]):
        docname, anchor = labels.get(f"commands-placet-{name.replace(' ', '-')}", ("", ""))
        if docname:
            return docname, anchor
    return None


class DarkPictures(SphinxTransform):
    """A picture beside which there is one called ``-dark`` is shown by day, and the other by night."""

    default_priority = 400  # before pictures are collected

    def apply(self, **_: Any) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            path = Path(image["uri"])
            dark = path.with_stem(f"{path.stem}-dark")
            if (folder / dark).is_file():
                other = image.deepcopy()
                other["uri"] = dark.as_posix()
                image["classes"].append("only-light")
                other["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, other)


def setup(app: Any) -> dict[str, bool]:
    app.add_post_transform(LinkedNames)
    app.add_transform(DarkPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
