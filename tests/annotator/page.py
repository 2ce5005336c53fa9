"""An HTML page as a browser without JavaScript takes it: its elements, their text, what a form sends."""

from html.parser import HTMLParser

VOID = {"br", "col", "hr", "img", "input", "link", "meta"}


class Element:
    def __init__(self, tag, attributes, ancestors):
        self.tag, self.attributes, self.ancestors = tag, attributes, ancestors
        self.parts = []

    def __getitem__(self, name):
        return self.attributes[name]

    def get(self, name):
        return self.attributes.get(name)

    @property
    def text(self):
        return " ".join("".join(self.parts).split())

    def is_in(self, other):
        return other in self.ancestors


class Page(HTMLParser):
    def __init__(self, response):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(response.content.decode())
        self.close()
        assert not self._open, f"not closed: {[element.tag for element in self._open]}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs}, list(self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        if tag == "option" and self._open[-1].tag != "option":
            return
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element.parts.append(data)

    def all(self, tag=None, **attributes):
        return [
            element
            for element in self.elements
            if tag in (None, element.tag)
            and all(element.get(name.rstrip("_")) == value for name, value in attributes.items())
        ]

    def one(self, tag=None, **attributes):
        (element,) = self.all(tag, **attributes)
        return element

    @property
    def text(self):
        return self.one("body").text

    def fields(self, form):
        """The controls that belong to a form, also those that name it from elsewhere."""
        return [
            element
            for element in self.elements
            if element.tag in ("input", "select", "textarea", "button")
            and (element.get("form") == form.get("id") if "form" in element.attributes else element.is_in(form))
        ]

    def sends(self, form):
        """What a browser posts when the form is sent as it stands."""
        sent = {}
        for field in self.fields(form):
            if field.tag == "select":
                options = [option for option in self.all("option") if option.is_in(field)]
                chosen = [option for option in options if "selected" in option.attributes] or options[:1]
                sent[field["name"]] = chosen[0]["value"]
            elif field.tag == "input" and (field["type"] not in ("checkbox", "radio") or "checked" in field.attributes):
                sent[field["name"]] = field.get("value") or ("on" if field["type"] == "checkbox" else "")
        return sent
