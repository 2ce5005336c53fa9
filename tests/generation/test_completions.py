"""Completions servers: both shapes of answer, what a server may do wrong, and the same text as without one."""

import math
import random
import socket
import time

import pytest
import torch

from generation.decoding.allowed import banned_tokens
from generation.decoding.likeliest import likeliest
from generation.decoding.topk import decode
from generation.engines.completions import (
    PromptTooLong,
    ServerAnswerInvalid,
    ServerUnavailable,
    TooFewLogProbs,
    connect,
    is_server,
)
from generation.parameters import TopKParameters
from tests.generation.completions_server import (
    LLAMA_CPP,
    OPENAI,
    CompletionsServer,
    answering,
    breaking_off,
    hanging,
    refusing,
    sending,
)

WORDS = [b" rain", b" fell", b" snow", b" all", b" day", b" long", b"\n"]
TABLE = {b" rain": 0.5, b" snow": 0.25, b" sun": 0.125, b"\n": 0.125}
PROMPT = "- rain fell\n-"


def logs(table):
    return {piece: math.log(probability) if probability else -math.inf for piece, probability in table.items()}


def after(text):
    """The log-probabilities of the words after a text: any, but always the same."""
    numbers = random.Random(text)
    weights = [numbers.random() ** 3 + 0.01 for _ in WORDS]
    return {word: math.log(weight / sum(weights)) for word, weight in zip(WORDS, weights, strict=True)}


class WordModel:
    """The toy that the server is backed by, asked directly."""

    def encode(self, text):
        return [text]

    def decode(self, tokens):
        return b"".join(WORDS[token] for token in tokens).decode()

    def ends(self, tokens):
        return tokens == WORDS.index(b"\n")

    def start(self, prompts, *, best, temperature, steps):
        self.best, self.temperature = best, temperature
        self.texts = [text for [text] in prompts]
        return self.next()

    def step(self, parents, tokens):
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        self.texts = [self.texts[parent] + self.decode([token]) for parent, token in pairs]
        return self.next()

    def next(self):
        logits = torch.tensor([list(after(text).values()) for text in self.texts])
        return likeliest(logits, best=self.best, temperature=self.temperature)


@pytest.fixture
def serve():
    """Start a server, and say how it is called."""
    servers = []

    def started(log_probs, **options):
        table = log_probs if callable(log_probs) else lambda text: logs(log_probs)
        servers.append(CompletionsServer(table, **options))
        return servers[-1].__enter__()

    yield started
    for server in servers:
        server.__exit__()


@pytest.fixture
def connected():
    """Connect to a server, impatiently."""
    models = []

    def connected(server, *, model_id="", **options):
        fragment = f"#{model_id}" if model_id else ""
        options = {"timeout": 5, "retries": 2, "backoff": 0.001, **options}
        models.append(connect(server.address + fragment, **options))
        return models[-1]

    yield connected
    for model in models:
        model.close()


def ask(model, *prompts, best=2, temperature=1.0):
    return model.start([model.encode(p) for p in prompts or [PROMPT]], best=best, temperature=temperature, steps=9)


def row(model, answer, number=0):
    """The texts and probabilities of a row's candidates."""
    pairs = zip(answer.tokens[number].tolist(), answer.log_probs[number].tolist(), strict=True)
    return {model.decode([token]): round(math.exp(log_prob), 5) for token, log_prob in pairs if log_prob > -math.inf}


both_shapes = pytest.mark.parametrize("shape", [OPENAI, LLAMA_CPP])


# --- Decoding ---------------------------------------------------------------------------


@both_shapes
@pytest.mark.parametrize(("k", "temperature"), [(7, 0.9), (7, 1.0), (3, 1.0), (1, 1.0)])
def test_topk_writes_the_same_over_a_server_as_with_the_same_model_at_hand(serve, connected, shape, k, temperature):
    prompts, seeds = ["- day\n-", "- snow\n-", "- rain\n-", "- snow\n-"], [1, 2, 3, 4]
    parameters = TopKParameters(k=k, temperature=temperature, max_new_tokens=12)
    here = decode(WordModel(), prompts, seeds=seeds, parameters=parameters)
    there = decode(connected(serve(after, shape=shape)), prompts, seeds=seeds, parameters=parameters)
    assert [(h.text, h.finish_reason) for h in there] == [(h.text, h.finish_reason) for h in here]
    for hypothesis, expected in zip(there, here, strict=True):
        assert hypothesis.log_probs == pytest.approx(expected.log_probs, abs=1e-5)
    assert k == 1 or len({h.text for h in here}) == 4


@both_shapes
def test_hypotheses_can_be_left_out_reordered_and_repeated(serve, connected, shape):
    server = serve(after, shape=shape)
    model = connected(server)
    ask(model, "- a\n-", "- b\n-", "- c\n-", best=7)
    rain, snow = (model.encode(word)[1] for word in (" rain", " snow"))
    answer = model.step(torch.tensor([2, 0, 2]), torch.tensor([rain, snow, rain]))
    for number, text in enumerate(["- c\n- rain", "- a\n- snow", "- c\n- rain"]):
        assert row(model, answer, number) == pytest.approx(
            {piece.decode(): math.exp(log_prob) for piece, log_prob in after(text).items()}, abs=1e-5
        )


def test_the_same_text_is_asked_about_once_a_step(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    assert ask(model, PROMPT, "- snow\n-", PROMPT).tokens.shape == (3, 2)
    assert sorted(question["prompt"] for question in server.questions) == [PROMPT, "- snow\n-"]


def test_a_server_is_asked_greedily_for_one_token_and_the_log_probabilities_of_n(serve, connected):
    server = serve(TABLE)
    ask(connected(server), best=3)
    assert server.questions == [{"model": "toy", "prompt": PROMPT, "max_tokens": 1, "logprobs": 3, "temperature": 0}]


@both_shapes
def test_candidates_are_likeliest_first(serve, connected, shape):
    model = connected(serve(TABLE, shape=shape))
    answer = ask(model, best=3)
    assert [model.decode([token]) for token in answer.tokens[0].tolist()][:2] == [" rain", " snow"]
    assert answer.log_probs[0].exp().tolist() == pytest.approx([0.5, 0.25, 0.125])
    assert (answer.tokens.dtype, answer.log_probs.dtype) == (torch.int64, torch.float32)


def test_at_another_temperature_the_log_softmax_is_over_what_the_server_gives(serve, connected):
    model = connected(serve(TABLE))
    squares = [0.5**2, 0.25**2, 0.125**2]
    answer = ask(model, best=3, temperature=0.5)
    assert answer.log_probs[0].exp().tolist() == pytest.approx([square / sum(squares) for square in squares])


def test_a_vocabulary_smaller_than_asked_for_is_no_fault_and_the_rest_is_impossible(serve, connected):
    model = connected(serve(TABLE))
    answer = ask(model, best=6)
    assert answer.tokens.shape == (1, 6)
    assert answer.log_probs[0, 4:].tolist() == [-math.inf, -math.inf]
    assert len(row(model, answer)) == 4


def test_a_newline_within_a_token_and_the_marks_of_an_end_end_a_statement(serve, connected):
    pieces = [" rain", ".\n- ", "<|endoftext|>", "</s>", "<s", " | "]
    model = connected(serve({piece.encode(): 1 / 6 for piece in pieces}))
    answer = ask(model, best=6)
    ending = answer.tokens[model.ends(answer.tokens)].tolist()
    assert {model.decode([token]) for token in ending} == {".\n- ", ""}
    assert row(model, answer)[""] == 0.33333  # of both marks


def test_a_token_that_has_no_bytes_is_an_end(serve, connected):
    model = connected(serve({b" rain": 0.75, b"": 0.25}, shape=LLAMA_CPP))
    answer = ask(model)
    assert model.ends(answer.tokens).tolist() == [[False, True]]
    assert row(model, answer) == {" rain": 0.75, "": 0.25}


def test_a_token_that_is_written_as_nothing_may_be_half_a_character_and_is_no_candidate(serve, connected):
    model = connected(serve({b" rain": 0.75, b"": 0.25}))
    assert row(model, ask(model)) == {" rain": 0.75}


def test_an_answer_may_have_the_sampled_token_as_one_more(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    top = {" sun": -2.08, " rain": -0.69, " snow": -1.39}
    server.faults = [answering(text=" sun", logprobs={"top_logprobs": [top]})]
    assert list(row(model, ask(model))) == [" rain", " snow"]


# --- Half characters --------------------------------------------------------------------

HALVES = {b" rain": 0.5, b"\xe2\x80": 0.2, b"\xf0\x9f": 0.2, b"\n": 0.1}


@both_shapes
def test_half_a_character_is_no_candidate(serve, connected, shape):
    model = connected(serve(HALVES, shape=shape))
    assert row(model, ask(model, best=4)) == {" rain": 0.5, "\n": 0.1}


def test_half_characters_that_are_all_written_alike_are_not_fewer_than_asked_for(serve, connected):
    model = connected(serve({b" rain": 0.5, "\ufffd".encode(): 0.2, b"\n": 0.1}))
    assert row(model, ask(model, best=4)) == {" rain": 0.5, "\n": 0.1}


@both_shapes
def test_a_server_that_is_silent_after_half_a_character_is_asked_to_sample_another_token(serve, connected, shape):
    server = serve({b"\xf0\x9f": 0.5, b" rain": 0.3, b"\n": 0.2}, shape=shape, silent=[b"\xf0\x9f"])
    model = connected(server)
    assert row(model, ask(model, best=3)) == {" rain": 0.3, "\n": 0.2}
    sampling = [(question["temperature"], question.get("seed")) for question in server.questions]
    assert sampling == [(0, None), (1, 0), (1, 1)]


@pytest.mark.parametrize(("probability", "best"), [(0.9, 1), (1.0, 2)])
def test_where_nothing_but_half_a_character_can_follow_a_statement_ends(serve, connected, probability, best):
    model = connected(serve({b"\xf0\x9f": probability, b" rain": 1 - probability}))
    answer = ask(model, best=best)
    assert model.ends(answer.tokens[0, :1]).tolist() == [True]
    assert row(model, answer) == {"": probability}


@both_shapes
def test_where_a_server_has_nothing_more_to_say_a_statement_ends(serve, connected, shape):
    table = {PROMPT: {b" rain": 1.0}, "- over\n-": {b"": 1.0}}
    model = connected(serve(lambda text: logs(table.get(text, TABLE)), shape=shape, silent=[b""]))
    ask(model, best=1)
    answer = ask(model, "- over\n-", best=1)
    assert (model.ends(answer.tokens).tolist(), answer.log_probs.tolist()) == ([[True]], [[0.0]])


# --- The tokens of a prompt -------------------------------------------------------------


def test_the_tokens_of_a_prompt_are_those_that_the_server_echoes(serve, connected):
    model = connected(serve(TABLE))
    assert model.prompt_tokens == "echo"
    whole, *tokens = model.encode("- rain snow\n-")
    assert [model.decode([token]) for token in tokens] == ["-", " rain", " snow", "\n", "-"]
    assert (whole < 0, model.decode([whole]), model.decode([whole, *tokens])) == (True, "", "- rain snow\n-")


def test_where_prompts_are_not_echoed_their_tokens_are_their_words(serve, connected):
    server = serve(TABLE, shape=LLAMA_CPP)
    model = connected(server)
    assert model.prompt_tokens == "words"
    assert [model.decode([token]) for token in model.encode("- rain\n-")[1:]] == [" rain", "rain"]
    assert sum("echo" in body for body in server.asked) == 1  # only when it connects


@both_shapes
def test_a_server_that_takes_the_wish_for_an_echo_and_forgets_it_does_not_echo(serve, connected, shape):
    model = connected(serve(TABLE, shape=shape, ignores_echo=True))
    assert model.prompt_tokens == "words"
    assert row(model, ask(model)) == {" rain": 0.5, " snow": 0.25}


@pytest.mark.parametrize(
    ("spelled", "written"),
    [
        (str.strip, "onetwothree"),
        (lambda token: token.replace(" ", "Ġ"), "oneĠtwoĠthree"),
    ],
)
def test_a_server_that_does_not_write_blanks_as_they_are_is_refused(serve, connected, spelled, written):
    server = serve(TABLE, spelled=spelled)
    with pytest.raises(ServerAnswerInvalid) as refusal:
        connected(server)
    assert str(refusal.value) == (
        f"The completions server {server.address} writes the tokens of “one two three” as “{written}”: what it writes "
        "of other tokens would be wrong as well. Some versions of vLLM lose blanks; use a newer one, or llama.cpp."
    )


@both_shapes
def test_tokens_of_the_prompt_are_banned_by_the_numbers_that_candidates_have(serve, connected, shape):
    model = connected(serve(TABLE, shape=shape))
    prompt = model.encode("- it is rain\n-")
    answer = ask(model, best=4)
    numbers = {model.decode([token]): token for token in answer.tokens[0].tolist()}
    banned = banned_tokens(model, prompt)
    assert numbers[" rain"] in banned
    assert not banned & {numbers[" snow"], numbers["\n"]}
    assert numbers[" rain"] not in banned_tokens(model, prompt, group_words=["rain"])


def test_a_prompt_is_sent_as_it_is_however_its_tokens_are_known(serve, connected):
    server = serve(TABLE, shape=LLAMA_CPP)
    ask(connected(server), "- çe n'est…\n-")
    assert server.questions[0]["prompt"] == "- çe n'est…\n-"


def test_a_prompt_is_cut_into_tokens_once(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    assert model.encode(PROMPT) == model.encode(PROMPT)
    assert [body["prompt"] for body in server.asked if body.get("echo")].count(PROMPT) == 1


def test_an_empty_prompt_is_refused(serve, connected):
    model = connected(serve(TABLE))
    with pytest.raises(ValueError) as refusal:
        ask(model, "")
    assert str(refusal.value) == ("A completions server cannot continue an empty prompt. Give the prompt some text.")


# --- Names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("http://host:8000/v1#m", True),
        ("https://host", True),
        ("org/model", False),
        ("/models/http", False),
        ("", False),
    ],
)
def test_a_server_is_told_by_its_name(name, is_one):
    assert is_server(name) is is_one


def test_a_model_has_the_name_it_was_asked_for_by_and_its_id_as_revision(serve, connected):
    server = serve(TABLE, models=["first", "second"])
    model = connected(server, model_id="second")
    assert (model.name, model.revision, model.device, model.dtype) == (
        f"{server.address}#second",
        "second",
        "server",
        "",
    )
    ask(model)
    assert {body["model"] for body in server.asked} == {"second"}


def test_without_an_id_the_first_model_is_meant(serve, connected):
    assert connected(serve(TABLE, models=["first", "second"])).revision == "first"


def test_an_address_without_a_path_means_v1(serve):
    server = serve(TABLE)
    model = connect(server.address.removesuffix("/v1"), retries=0)
    assert model.client.address == server.address
    model.close()


def test_a_model_that_is_not_served_is_refused_with_those_that_are(serve, connected):
    server = serve(TABLE, models=["first", "second"])
    with pytest.raises(ServerAnswerInvalid) as refusal:
        connected(server, model_id="third")
    assert str(refusal.value) == (
        f"The completions server {server.address} does not serve 'third' but 'first', 'second'. "
        "Write the id of one of them after the #."
    )


def test_a_server_without_models_is_refused(serve, connected):
    server = serve(TABLE, models=[])
    with pytest.raises(ServerAnswerInvalid) as refusal:
        connected(server)
    assert str(refusal.value) == f"The completions server {server.address} lists no models. Start it with one."


@pytest.mark.parametrize("name", ["http://", "http:///v1#m", "http://host:port/v1", "http://[::1/v1", "file:///v1"])
def test_a_name_that_is_no_address_is_refused(name):
    with pytest.raises(ValueError) as refusal:
        connect(name)
    assert str(refusal.value) == (
        f"{name!r} is no address of a completions server. Write it as http://host:8000/v1#model-id."
    )


@pytest.mark.parametrize("name", ["http://me:secret@host/v1#m", "http://host/v1?key=secret"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(name):
    with pytest.raises(ValueError) as refusal:
        connect(name)
    assert str(refusal.value) == (
        "A completions server's address is stored with each run, so it has no user name, password or query. "
        "Write it as http://host:8000/v1#model-id, and give the key as the API key."
    )


# --- The key ----------------------------------------------------------------------------


def test_the_key_is_sent_with_every_request_and_without_one_none_is(serve, connected):
    server = serve(TABLE)
    ask(connected(server, api_key="abc123"))
    assert server.keys == {"Bearer abc123"}
    server.keys.clear()
    ask(connected(server))
    assert server.keys == {None}


def test_a_server_that_repeats_the_key_does_not_get_it_into_a_message(serve, connected):
    server = serve(TABLE)
    model = connected(server, api_key="abc123")
    server.faults = [refusing(401, "Incorrect API key: abc123")]
    with pytest.raises(ServerAnswerInvalid) as refusal:
        ask(model)
    assert str(refusal.value) == (
        f"The completions server {server.address} refuses /completions with status 401: “Incorrect API key: …”. "
        "Check the API key."
    )


def test_a_key_with_a_line_end_is_refused_without_repeating_it(serve, connected):
    with pytest.raises(ValueError) as refusal:
        connected(serve(TABLE), api_key="abc123\n")
    assert str(refusal.value) == "The API key has a character that no key has, such as a line's end. Set it again."


# --- Servers in trouble -----------------------------------------------------------------


@pytest.mark.parametrize("fault", [refusing(500), refusing(429), refusing(503), breaking_off])
def test_a_passing_error_is_waited_out(serve, connected, fault):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [fault, fault]
    assert row(model, ask(model)) == {" rain": 0.5, " snow": 0.25}
    assert len(server.questions) == 3


def test_the_wait_doubles_from_try_to_try(serve, connected):
    server = serve(TABLE)
    model = connected(server, backoff=0.1)
    server.faults = [refusing(500), refusing(500)]
    before = time.monotonic()
    ask(model)
    assert time.monotonic() - before >= 0.1 + 0.2


def test_a_busy_server_is_left_alone_for_as_long_as_it_says(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [refusing(429, Retry_After="1")]
    before = time.monotonic()
    ask(model)
    assert time.monotonic() - before >= 1


def test_a_server_that_stays_unavailable_is_given_up_with_what_it_said(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [refusing(503, "Loading model")] * 3
    with pytest.raises(ServerUnavailable) as failure:
        ask(model)
    assert str(failure.value) == (
        f"The completions server {server.address} answers with status 503: “Loading model”; it was tried 3 times. "
        "See that it runs and has room, and start again."
    )
    assert not server.faults


def test_a_server_that_hangs_is_given_up(serve, connected):
    server = serve(TABLE)
    model = connected(server, timeout=0.3, retries=1)
    server.faults = [hanging, hanging]
    with pytest.raises(ServerUnavailable) as failure:
        ask(model)
    assert str(failure.value) == (
        f"The completions server {server.address} did not answer within 0.3 seconds; it was tried 2 times. "
        "See that it runs and has room, and start again."
    )


def test_an_address_where_nobody_answers_is_given_up():
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        with pytest.raises(ServerUnavailable) as failure:
            connect(address, retries=1, backoff=0.001)
    assert str(failure.value) == (
        f"The completions server {address} cannot be reached, or breaks off (ConnectionError); it was tried 2 times. "
        "See that it runs and has room, and start again."
    )


def test_after_a_failure_the_model_can_be_used_again(serve, connected):
    server = serve(TABLE)
    model = connected(server, retries=0)
    server.faults = [refusing(503)]
    with pytest.raises(ServerUnavailable):
        ask(model)
    assert row(model, ask(model)) == {" rain": 0.5, " snow": 0.25}


# --- Wrong answers ----------------------------------------------------------------------

ADVICE = "Use one whose /completions knows logprobs, such as vLLM or llama.cpp."
IN_V1 = "Check the address, which ends in /v1 as a rule."


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (
            sending(b'{"choices": [{"te'),
            f'answers /completions with what is no JSON object: “{{"choices": [{{"te”. {IN_V1}',
        ),
        (sending(b"<html>hi</html>"), f"answers /completions with what is no JSON object: “<html>hi</html>”. {IN_V1}"),
        (sending(b""), f"answers /completions with what is no JSON object. {IN_V1}"),
        (sending(b"[1]"), f"answers /completions with what is no JSON object: “[1]”. {IN_V1}"),
        (sending(b"{}"), f"answers without choices. {ADVICE}"),
        (sending(b'{"choices": []}'), f"answers without choices. {ADVICE}"),
        (answering(text=" rain"), f"gives no log-probabilities. {ADVICE}"),
        (answering(text=" rain", logprobs=None), f"gives no log-probabilities. {ADVICE}"),
        (answering(text=" rain", logprobs={"top_logprobs": None}), f"gives no log-probabilities. {ADVICE}"),
        (answering(text=" rain", logprobs={"top_logprobs": [{}]}), f"gives no log-probabilities. {ADVICE}"),
        (answering(text=" rain", logprobs={"content": []}), f"gives no log-probabilities. {ADVICE}"),
        (answering(text=" rain", logprobs={"tokens": []}), f"writes its log-probabilities in an unknown way. {ADVICE}"),
        (answering(text=" rain", logprobs=[1]), f"writes its log-probabilities in an unknown way. {ADVICE}"),
        (
            answering(text=" rain", logprobs={"top_logprobs": [{" rain": "high"}]}),
            f"writes its log-probabilities in an unknown way. {ADVICE}",
        ),
        (
            answering(text=" rain", logprobs={"top_logprobs": [{" rain": math.nan, " snow": -1.0}]}),
            f"writes its log-probabilities in an unknown way. {ADVICE}",
        ),
        (
            refusing(302, "", Location="http://elsewhere/"),
            "refuses /completions with status 302. Check the address and what the server can do.",
        ),
        (
            refusing(400, "No such thing"),
            "refuses /completions with status 400: “No such thing”. Check the address and what the server can do.",
        ),
        (
            refusing(500, "logprobs is not supported for models created with logits_all=False"),
            "refuses /completions with status 500: “logprobs is not supported for models created with "
            "logits_all=False”. Check the address and what the server can do.",
        ),
        (
            refusing(404, "The model `toy` does not exist."),
            "refuses /completions with status 404: “The model `toy` does not exist.”. Check the address, which ends "
            "in /v1 as a rule, and the model's id after the #.",
        ),
    ],
)
def test_a_wrong_answer_is_said_and_not_asked_for_again(serve, connected, fault, complaint):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [fault]
    with pytest.raises(ServerAnswerInvalid) as failure:
        ask(model)
    assert str(failure.value) == f"The completions server {server.address} {complaint}"
    assert len(server.questions) == 1


def test_a_server_that_never_gives_a_log_probability_is_not_taken_for_one_that_always_ends(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [answering(text="", logprobs=None)] * 6
    with pytest.raises(ServerAnswerInvalid) as failure:
        ask(model)
    assert str(failure.value) == f"The completions server {server.address} gives no log-probabilities. {ADVICE}"


def test_an_impossible_token_is_no_candidate(serve, connected):
    model = connected(serve({b" rain": 1.0, b" snow": 0.0}))
    assert row(model, ask(model, temperature=0.5)) == {" rain": 1.0}


@both_shapes
def test_fewer_log_probabilities_than_asked_for_are_refused(serve, connected, shape):
    server = serve(TABLE, shape=shape, most=2)
    with pytest.raises(TooFewLogProbs) as failure:
        ask(connected(server), best=3)
    assert str(failure.value) == (
        f"The completions server {server.address} was asked for the 3 likeliest tokens and gives 2. Lower k (top-k) or "
        "vocabulary (ALICE), or let the server give more (vLLM: --max-logprobs 3)."
    )


def test_far_fewer_than_asked_for_are_refused_with_half_a_character_among_them_too(serve, connected):
    server = serve({b"\xe2": 0.6, **{f" word{number}".encode(): 0.01 for number in range(30)}}, most=5)
    with pytest.raises(TooFewLogProbs):
        ask(connected(server), best=20)


def test_a_server_that_refuses_to_give_so_many_is_quoted(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [refusing(400, "Requested sample logprobs of 100, which is greater than max allowed: 20")]
    with pytest.raises(TooFewLogProbs) as failure:
        ask(model, best=100)
    assert str(failure.value) == (
        f"The completions server {server.address} was asked for the 100 likeliest tokens and refuses: “Requested "
        "sample logprobs of 100, which is greater than max allowed: 20”. Lower k (top-k) or vocabulary (ALICE), or let "
        "the server give more (vLLM: --max-logprobs 100)."
    )


def test_a_prompt_longer_than_the_model_reads_is_said(serve, connected):
    server = serve(TABLE)
    model = connected(server)
    server.faults = [refusing(400, "request (9 tokens) exceeds the available context size (8 tokens)")]
    with pytest.raises(PromptTooLong) as failure:
        ask(model)
    assert str(failure.value) == (
        "A prompt with what follows it is longer than the model of the completions server "
        f"{server.address} reads: “request (9 tokens) exceeds the available context size (8 tokens)”. Use shorter "
        "demonstrations or fewer new tokens, or start the server with a longer context (vLLM: --max-model-len, "
        "llama.cpp: --ctx-size)."
    )


# --- Many at once -----------------------------------------------------------------------


def test_requests_are_made_at_once_up_to_a_bound_and_answers_come_in_order(serve, connected):
    server = serve(lambda text: logs({f" {text}".encode(): 1.0}), seconds=0.05)
    model = connected(server, concurrency=4)
    prompts = [f"p{number}" for number in range(12)]
    encoded = [model.encode(prompt) for prompt in prompts]
    answer = model.start(encoded, best=1, temperature=1.0, steps=1)
    assert [model.decode(tokens) for tokens in answer.tokens.tolist()] == [f" {prompt}" for prompt in prompts]
    assert server.most_at_once == 4


def test_one_failure_among_many_ends_the_step_without_asking_on(serve, connected):
    server = serve(TABLE, seconds=0.02)
    model = connected(server, concurrency=2)
    prompts = [f"- p{number}\n-" for number in range(20)]
    for prompt in prompts:
        model.encode(prompt)
    server.faults = [refusing(400)] * 2
    with pytest.raises(ServerAnswerInvalid):
        ask(model, *prompts)
    assert len(server.questions) < 10
