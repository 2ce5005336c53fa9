"""A browser as far as a load needs one: HTTP/1.1 on one kept connection, and cookies."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Response:
    """``headers`` are pairs, their names in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: str

    def all(self, name: str) -> list[str]:
        return [value for header, value in self.headers if header == name]

    def header(self, name: str) -> str:
        return next(iter(self.all(name)), "")


Exchange = Callable[[str, str, dict[str, str], bytes], Awaitable[Response]]


@dataclass
class Browser:
    """Keeps cookies and follows nothing by itself; ``exchange`` carries a request to the server."""

    exchange: Exchange
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str) -> Response:
        return await self._send("GET", path, {}, b"")

    async def post(self, path: str, form: dict[str, object]) -> Response:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._send("POST", path, headers, urlencode(form).encode())

    async def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        if self.cookies:
            headers = headers | {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        response = await self.exchange(method, path, headers, body)
        for cookie in response.all("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
            if "max-age=0" in cookie.lower():
                del self.cookies[name]
        return response


class Connection:
    """A connection that stays open from one request to the next, and is opened again once it was closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def exchange(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        """Send a request and return its response; whatever goes wrong meanwhile closes the connection."""
        try:
            response = await self._exchange(method, path, headers, body)
        except BaseException:
            self.close()
            raise
        if response.header("connection").lower() == "close":
            self.close()
        return response

    def close(self) -> None:
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def _exchange(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        if self.writer is None or self.reader.at_eof():
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        headers = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(body))} | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
        first, *lines = (await self.reader.readuntil(END_OF_HEAD))[: -len(END_OF_HEAD)].decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        response = Response(int(first.split()[1]), [(name.lower(), value.strip()) for name, _, value in pairs], "")
        return Response(response.status, response.headers, (await self._body(response)).decode())

    async def _body(self, response: Response) -> bytes:
        if response.header("transfer-encoding").lower() != "chunked":
            return await self.reader.readexactly(int(response.header("content-length") or 0))
        parts = []
        while size := int((await self.reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            parts.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        while await self.reader.readuntil(b"\r\n") != b"\r\n":
            pass  # a trailer
        return b"".join(parts)
