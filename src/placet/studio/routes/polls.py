"""Polls: created and monitored by the owner, answered by anyone who has the link."""

import asyncio
import csv
import io
import json
import re
import secrets
from datetime import UTC, datetime
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from placet.studio import polls, workspace
from placet.studio.goal_watch import closes_now
from placet.studio.pages import page
from placet.studio.polls import Desk, Poll, Refused
from placet.studio.routes.common import body_of, store_of
from placet.studio.security import address, is_encrypted, same

MOST_IMAGE = 8 << 20
IMAGES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif", b"RIFF": "webp"}
"""First bytes -> suffix of the image formats allowed for items; SVG is excluded because it can contain scripts."""

_IMAGE = re.compile(rf"[0-9a-f]{{16}}\.({'|'.join(IMAGES.values())})")
_NONCE = re.compile(r"[A-Za-z0-9-]{8,64}")


# The owner


async def overview(request: Request) -> Response:
    """All polls, and a form for a new one."""
    rows = store_of(request).rows("SELECT id, title, kind, open FROM poll ORDER BY created DESC")
    return page(request, "polls.html", polls=rows, kinds=polls.KINDS)


async def make(request: Request) -> Response:
    """Create a poll."""
    try:
        values = polls.parse_poll(await body_of(request), store_of(request).images)
    except (ValueError, TypeError) as error:
        raise HTTPException(400, str(error)) from None
    return JSONResponse({"id": polls.add_poll(store_of(request), values)}, status_code=201)


async def add_image(request: Request) -> Response:
    """Upload an image for an item; its format is detected from its first bytes."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_IMAGE:
            raise HTTPException(413, f"the image is larger than {MOST_IMAGE:,} bytes")
    suffix = next((suffix for magic, suffix in IMAGES.items() if content.startswith(magic)), None)
    if suffix is None or (suffix == "webp" and content[8:12] != b"WEBP"):
        raise HTTPException(415, "images are PNG, JPEG, GIF or WebP")
    name, store = f"{secrets.token_hex(8)}.{suffix}", store_of(request)
    await asyncio.to_thread(workspace.save_bytes, store.folder, store.images / name, content)
    return JSONResponse({"image": name}, status_code=201)


async def remove_image(request: Request) -> Response:
    """Delete an image that was taken back before a poll was made with it."""
    name, store = request.path_params["image"], store_of(request)
    if not _IMAGE.fullmatch(name) or not (store.images / name).is_file():
        raise HTTPException(404, "there is no such image in this workspace")
    try:
        await asyncio.wrap_future(store.write(polls.remove_image(store.images / name)))
    except Refused as error:
        raise HTTPException(409, str(error)) from None
    return JSONResponse({})


async def show(request: Request) -> Response:
    """The owner's page of a poll: its link, results, votes."""
    poll = _poll(request)
    return page(request, "poll.html", poll=poll, link=str(request.url_for("vote", poll=poll.id)))


async def results(request: Request) -> Response:
    """The latest results, for the owner."""
    return _results(request, _poll(request))


async def set_open(request: Request) -> Response:
    """Close or reopen a poll."""
    poll, values = _poll(request), await body_of(request)
    settings = json.dumps(poll.settings | {"stop": False})  # one that is opened again is closed by hand
    change = store_of(request).execute(
        "UPDATE poll SET open = ?, settings = ? WHERE id = ?", int(bool(values.get("open"))), settings, poll.id
    )
    await asyncio.wrap_future(change)
    _desk(request).forget(poll.id)
    return JSONResponse({"open": bool(values.get("open"))})


async def export(request: Request) -> Response:
    """All raw votes, or those that count, in a format that Placet reads."""
    poll, kind = _poll(request), request.path_params["kind"]
    rows = store_of(request).rows("SELECT * FROM vote WHERE poll = ? ORDER BY number", poll.id)
    if kind == "raw":
        content, suffix = _raw_jsonl(poll, rows), "jsonl"
    else:
        content, suffix = _counted_csv(poll, [row for row in rows if row["counts"]]), "csv"
    headers = {"Content-Disposition": f'attachment; filename="poll-{poll.id}.{suffix}"'}
    return Response(content, media_type="text/csv" if suffix == "csv" else "application/jsonl", headers=headers)


async def as_dataset(request: Request) -> Response:
    """Store the votes that count so far as a dataset of the workspace."""
    poll, store = _poll(request), store_of(request)
    rows = store.rows("SELECT * FROM vote WHERE poll = ? AND counts = 1 ORDER BY number", poll.id)
    content = _counted_csv(poll, rows).encode("utf-8", "replace")

    async def chunks() -> Any:
        yield content

    data = await store.save_upload(f"{poll.title[:60]}.csv", chunks(), len(content) + 1)
    return JSONResponse({"id": data.id}, status_code=201)


def _raw_jsonl(poll: Poll, rows: list[Any]) -> str:
    lines = []
    for row in rows:
        when = datetime.fromtimestamp(row["created"], UTC).isoformat()
        about = {"number": row["number"], "time": when, "voter": row["voter"], "counts": bool(row["counts"])}
        answer = json.loads(row["answer"])
        if poll.kind == "pairs":
            answer = {**answer, "first": poll.names[answer["first"]], "second": poll.names[answer["second"]]}
        elif poll.kind == "sets":
            names = [*poll.names, None]
            chosen = {word: names[-1 if answer[word] is None else answer[word]] for word in ("best", "worst")}
            answer = {"shown": [names[k] for k in answer["shown"]]} | chosen
        else:
            answer = {"ballot": [[poll.names[k] for k in tier] for tier in answer]}
        lines.append(json.dumps(about | answer, ensure_ascii=False))
    return "\n".join(lines) + ("\n" if lines else "")


def _counted_csv(poll: Poll, rows: list[Any]) -> str:
    """A table of votes (a, b, winner, agent), of best-worst choices or of ballots (ballot, item, rank, agent)."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    if poll.kind == "pairs":
        table.writerow(["model_a", "model_b", "winner", "agent"])
        for row in rows:
            one = json.loads(row["answer"])
            if one["answer"] != "skip":
                word = {"a": "model_a", "b": "model_b", "tie": "tie"}[one["answer"]]
                table.writerow([poll.names[one["first"]], poll.names[one["second"]], word, row["voter"]])
    elif poll.kind == "sets":
        table.writerow([*(f"item{k + 1}" for k in range(poll.settings["shown"])), "best", "worst", "agent"])
        for row in rows:
            one = json.loads(row["answer"])
            if one["best"] is not None:
                table.writerow([*(poll.names[k] for k in (*one["shown"], one["best"], one["worst"])), row["voter"]])
    else:
        table.writerow(["ballot", "item", "rank", "agent"])
        for row in rows:
            for rank, tier in enumerate(json.loads(row["answer"]), 1):
                table.writerows([row["number"], poll.names[k], rank, row["voter"]] for k in tier)
    return file.getvalue()


# The voters


async def vote_page(request: Request) -> Response:
    """The page for voters; a new voter gets a cookie that is valid only for this poll."""
    poll, keys = _poll(request), request.app.state.keys
    voter = _voter(request, poll)
    is_new = voter is None
    if voter is None:
        if not request.app.state.voters.allows(address(request)):
            raise HTTPException(429, "too many new voters from one address; wait a minute")
        voter = secrets.token_hex(8)
    mine = store_of(request).row(
        "SELECT answer FROM vote WHERE poll = ? AND voter = ? AND asked = 'ballot' AND counts = 1", poll.id, voter
    )
    order = polls.shuffled_for(voter, len(poll.items))
    about = {"id": poll.id, "kind": poll.kind, "open": poll.open, "settings": poll.settings, "order": list(order)}
    about["items"] = [
        {"text": item["text"], "image": f"/p/{poll.id}/image/{k}" if item["image"] else ""}
        for k, item in enumerate(poll.items)
    ]
    about["mine"] = None if mine is None else json.loads(mine["answer"])
    about["voted"] = not is_new and polls.has_voted(store_of(request), poll.id, voter)
    answer = page(request, "vote.html", csrf=keys.csrf(f"{poll.id} {voter}"), poll=poll, about=json.dumps(about))
    if is_new:
        signed = f"{voter}.{keys.sign('voter', poll.id, voter)}"
        answer.set_cookie(
            f"voter_{poll.id}",
            signed,
            httponly=True,
            samesite="lax",
            path=f"/p/{poll.id}",
            max_age=365 * 86400,
            secure=is_encrypted(request),
        )
    return answer


async def next_question(request: Request) -> Response:
    """The pair or set to ask this voter next."""
    poll = _poll(request)
    if poll.kind == "ballots":
        raise HTTPException(404, "this poll asks for ballots")
    return JSONResponse(_desk(request).next_question(poll, _known_voter(request, poll)))


async def vote(request: Request) -> Response:
    """Store a vote; respond when it is on disk."""
    poll = _poll(request)
    voter = _known_voter(request, poll)
    token = request.headers.get("x-csrf", "")
    if not same(token, request.app.state.keys.csrf(f"{poll.id} {voter}")):
        raise HTTPException(403, "this vote carries no valid token; load the page again")
    if not request.app.state.votes.allows(voter):
        raise HTTPException(429, "that was too fast; wait a moment")
    values = await body_of(request, 1 << 16)
    nonce = values.get("nonce")
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise HTTPException(400, "a vote needs a nonce of 8 to 64 letters and digits")
    try:
        asked, answer = polls.answer_of(poll, values)
        change = polls.cast_vote(poll, voter, f"{voter}:{nonce}", asked, answer, closes_now)
        done, closed = await asyncio.wrap_future(store_of(request).write(change))
    except Refused as error:
        raise HTTPException(409, str(error)) from None
    if closed:
        _desk(request).forget(poll.id)
        poll = _poll(request)
    following = {} if poll.kind == "ballots" else _desk(request).next_question(poll, voter)
    return JSONResponse({"state": done, "next": following}, status_code=201 if done != "known" else 200)


async def public_results(request: Request) -> Response:
    """The results, if the poll shows them to its voters, or to those who have voted."""
    poll = _poll(request)
    if poll.settings["results"] == "owner":
        raise HTTPException(403, "this poll shows its results to its owner alone")
    hidden = poll.settings["results"] == "after" and poll.open
    if hidden and not polls.has_voted(store_of(request), poll.id, _known_voter(request, poll)):
        raise HTTPException(403, "this poll shows its results to those who have voted")
    return _results(request, poll)


async def image(request: Request) -> Response:
    """The image of an item."""
    poll, number = _poll(request), request.path_params["number"]
    name = poll.items[number]["image"] if number < len(poll.items) else ""
    if not name:
        raise HTTPException(404, "this item has no image")
    return FileResponse(store_of(request).images / name)


def _results(request: Request, poll: Poll) -> Response:
    """The results, except those that the reader already has, identified by ``?have=``."""
    have = request.query_params.get("have", "")
    text = _desk(request).results(poll, int(have) if have.isdecimal() and len(have) < 19 else -1)
    return Response(text, media_type="application/json")


def _desk(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


def _poll(request: Request) -> Poll:
    try:
        return _desk(request).poll(request.path_params["poll"])
    except KeyError:
        raise HTTPException(404, "there is no such poll") from None


def _voter(request: Request, poll: Poll) -> str | None:
    """The voter identified by this poll's cookie; None if there is none or its signature is invalid."""
    voter, _, signature = request.cookies.get(f"voter_{poll.id}", "").partition(".")
    right = request.app.state.keys.sign("voter", poll.id, voter)
    return voter if voter and same(signature, right) else None


def _known_voter(request: Request, poll: Poll) -> str:
    voter = _voter(request, poll)
    if voter is None:
        raise HTTPException(403, "open the poll's page first; this browser must keep its cookie")
    return voter


routes = [
    Route("/polls", overview),
    Route("/api/polls", make, methods=["POST"]),
    Route("/api/images", add_image, methods=["POST"]),
    Route("/api/images/{image}", remove_image, methods=["DELETE"]),
    Route("/polls/{poll}", show),
    Route("/api/polls/{poll}/results", results),
    Route("/api/polls/{poll}/open", set_open, methods=["PUT"]),
    Route("/api/polls/{poll}/dataset", as_dataset, methods=["POST"]),
    Route("/polls/{poll}/votes.{kind}", export),
    Route("/p/{poll}", vote_page, name="vote"),
    Route("/p/{poll}/next", next_question),
    Route("/p/{poll}/vote", vote, methods=["POST"]),
    Route("/p/{poll}/results", public_results),
    Route("/p/{poll}/image/{number:int}", image),
]
