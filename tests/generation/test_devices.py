"""Devices: chosen by a setting, absent ones said, and batches that fit the memory."""

from types import SimpleNamespace

import pytest
import torch

from generation.devices import (
    Batches,
    DeviceUnavailable,
    OutOfMemory,
    bytes_a_prompt,
    choose,
    describe,
    prompts_at_once,
)

GPT_J = SimpleNamespace(num_hidden_layers=28, num_attention_heads=16, hidden_size=4096, vocab_size=50_400)
LLAMA_8B = SimpleNamespace(
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    hidden_size=4096,
    vocab_size=128_256,
)
GB = 10**9


@pytest.fixture
def cuda(monkeypatch):
    """A machine with a GPU of which 60 GB are free, 5 GB of these in torch's own keeping."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Toy GPU")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (55 * GB, 80 * GB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 20 * GB)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 15 * GB)


@pytest.fixture
def no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


# --- Choosing ---------------------------------------------------------------------------


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(("name", "device"), [("auto", "cuda"), ("cuda", "cuda"), ("cpu", "cpu")])
def test_where_there_is_cuda_it_is_taken_unless_the_setting_says_otherwise(name, device):
    assert choose(name) == torch.device(device)


@pytest.mark.usefixtures("no_cuda")
@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_where_there_is_none_the_processor_is_taken(name):
    assert choose(name) == torch.device("cpu")


@pytest.mark.usefixtures("no_cuda")
def test_cuda_that_is_asked_for_and_absent_is_said_with_what_to_do():
    with pytest.raises(DeviceUnavailable) as refused:
        choose("cuda")
    assert str(refused.value) == (
        "HUMANVAL_DEVICE is 'cuda', and torch finds no CUDA device on this worker's machine. Start a worker where "
        "there is one, with the CUDA build of torch, or set HUMANVAL_DEVICE to 'auto' or 'cpu'."
    )


def test_an_unknown_device_is_refused_with_those_there_are():
    with pytest.raises(DeviceUnavailable) as refused:
        choose("gpu")
    assert str(refused.value) == "HUMANVAL_DEVICE is 'gpu'. Set it to one of: auto, cpu, cuda."


@pytest.mark.usefixtures("cuda")
def test_a_run_notes_a_gpu_with_its_name():
    assert describe(torch.device("cuda")) == "cuda (Toy GPU)"
    assert describe(torch.device("cpu")) == "cpu"
    assert describe("server") == "server"


# --- How many prompts at once -----------------------------------------------------------


def model(config=GPT_J, *, device="cuda", prompt_tokens=100):
    return SimpleNamespace(
        device=torch.device(device) if device != "server" else device,
        dtype=torch.bfloat16,
        model=SimpleNamespace(config=config),
        forget=lambda: None,
        encode=lambda text: [0] * prompt_tokens,
    )


def test_a_prompt_takes_its_keys_and_values_and_the_logits_of_its_beam():
    cache = 2 * 28 * 4096 * 2 * 400  # keys and values, layers, width, bytes, tokens
    assert bytes_a_prompt(GPT_J, 2, tokens=400, beam=10) == 1.5 * cache + 3 * 4 * 10 * 50_400


def test_heads_that_share_a_key_head_take_less():
    cache = 2 * 32 * 8 * 128 * 2 * 400
    assert bytes_a_prompt(LLAMA_8B, 2, tokens=400, beam=10) == 1.5 * cache + 3 * 4 * 10 * 128_256


@pytest.mark.usefixtures("cuda")
def test_a_gpu_takes_as_many_prompts_as_its_free_memory_holds_and_no_more_than_there_are():
    need = bytes_a_prompt(GPT_J, 2, tokens=100 + 10 * 30, beam=10)
    fit = int(0.6 * 60 * GB / need)
    assert 64 < fit < 500
    assert prompts_at_once(model(), ["-"] * 500, beam=10, steps=30) == fit
    assert prompts_at_once(model(), ["-"] * 64, beam=10, steps=30) == 64


@pytest.mark.usefixtures("cuda")
def test_a_gpu_takes_one_prompt_at_least():
    assert prompts_at_once(model(prompt_tokens=10**6), ["-"] * 64, beam=10, steps=30) == 1


def test_a_processor_takes_sixteen_and_a_server_all():
    assert prompts_at_once(model(device="cpu"), ["-"] * 64, beam=10, steps=30) == 16
    assert prompts_at_once(model(device="server"), ["-"] * 64, beam=10, steps=30) == 64


# --- Batches ----------------------------------------------------------------------------


class Memory:
    """Decodes by adding prompt and seed, if there is room for so many."""

    def __init__(self, *rooms):
        self.rooms = list(rooms)
        self.tried = []

    def __call__(self, prompts, seeds):
        self.tried.append(len(prompts))
        room = self.rooms.pop(0) if len(self.rooms) > 1 else self.rooms[0]
        if len(prompts) > room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return [f"{prompt}{seed}" for prompt, seed in zip(prompts, seeds, strict=True)]


def decoded(memory, count, *, batches=None, at_once=100):
    prompts, seeds = [f"p{number}-" for number in range(count)], list(range(count))
    return (batches or Batches()).decode(memory, prompts, seeds, at_once=at_once)


@pytest.mark.parametrize("room", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("at_once", [1, 4, 100])
@pytest.mark.parametrize("count", [0, 1, 13])
def test_whatever_fits_every_prompt_is_decoded_once_and_in_order(room, at_once, count):
    assert decoded(Memory(room), count, at_once=at_once) == [f"p{number}-{number}" for number in range(count)]


def test_what_did_not_fit_is_halved_and_stays_so():
    memory, batches = Memory(5), Batches()
    decoded(memory, 16, batches=batches)
    decoded(memory, 5, batches=batches)
    assert memory.tried == [16, 8, 4, 4, 4, 4, 4, 1]


def test_what_is_decoded_already_is_not_decoded_again():
    memory = Memory(8, 3, 8)
    decoded(memory, 16, at_once=8)
    assert memory.tried == [8, 8, 4, 4]


def test_one_prompt_that_does_not_fit_is_the_end():
    memory = Memory(0)
    with pytest.raises(OutOfMemory) as failure:
        decoded(memory, 4)
    assert memory.tried == [4, 2, 1]
    assert str(failure.value) == (
        "The device has too little memory for even one prompt at a time. Use a smaller model, beam or vocabulary, "
        "fewer new tokens, bfloat16, or a device with more memory that nobody else uses."
    )


def test_the_failed_attempt_s_tensors_are_let_go_before_the_next():
    alive = []

    class Tensors:
        def __init__(self):
            alive.append(self)

        def __del__(self):
            freed.append(len(tried))

    freed, tried = [], []

    def decode(prompts, seeds):
        tried.append(len(prompts))
        if len(prompts) > 1:
            tensors = Tensors()
            alive.clear()
            raise torch.OutOfMemoryError(f"{type(tensors)} CUDA out of memory.")
        return prompts

    Batches().decode(decode, ["-"] * 4, [0] * 4, at_once=4)
    assert freed == [1, 2]  # before the second try, before the third
    assert tried == [4, 2, 1, 1, 1, 1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_real_gpu_goes_on_after_it_ran_out_of_memory():
    free, _ = torch.cuda.mem_get_info()

    def decode(prompts, seeds):
        torch.empty(int(len(prompts) * free / 3), dtype=torch.uint8, device="cuda")
        return prompts

    batches = Batches()
    assert batches.decode(decode, ["-"] * 8, [0] * 8, at_once=8) == ["-"] * 8
    assert batches.most == 2
