"""Models of Hugging Face as their users have them, from configurations with random weights: on device weft they give
what they give on the CPU, forward, backward, after a step of AdamW, and generating with a cache."""
import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("weft.torch")
transformers = pytest.importorskip("transformers")

# float32 sums in another order than the CPU's: what differs is rounding.
FORWARD = {"rtol": 1e-4, "atol": 1e-5}
GRADIENTS = {"rtol": 1e-3, "atol": 1e-5}
# AdamW's first step is the sign of the gradient: where that is rounding, weights differ by up to twice the rate.
RATE = 1e-4

SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}


def bert():
    config = transformers.BertConfig(**SMALL, max_position_embeddings=64)
    return transformers.BertForSequenceClassification(config), words(2, 7, labels=torch.tensor([0, 1]))


def gpt2():
    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return transformers.GPT2LMHeadModel(config), words(2, 7)


def llama():
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=64)
    return transformers.LlamaForCausalLM(config), words(2, 7)


def t5():
    config = transformers.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4,
                                   dropout_rate=0.0, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config), words(2, 7)


def vit():
    config = transformers.ViTConfig(**{k: v for k, v in SMALL.items() if k != "vocab_size"}, image_size=16, patch_size=4,
                                    num_labels=5)
    return transformers.ViTForImageClassification(config), \
        {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([1, 4])}


def words(batch, length, labels=None):
    ids = torch.randint(1, 99, (batch, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids if labels is None else labels}


MODELS = [bert, gpt2, llama, t5, vit]
GENERATING = [gpt2, llama, t5]


def pair(make):
    """The model on the CPU and on the device, without dropout, and an input for each."""
    torch.manual_seed(0)
    model, given = make()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.train()
    ours = copy.deepcopy(model).to("weft")
    return model, given, ours, {name: tensor.to("weft") for name, tensor in given.items()}


@pytest.fixture
def no_fallbacks():
    """In what the test does between; sizes of hot paths do not depend on values."""
    torch.weft.reset_counters()
    yield
    assert torch.weft.counters()["fallback"] == {}


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_step_of_training(make, no_fallbacks):
    theirs, given, ours, given_to_ours = pair(make)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=RATE) for m in (theirs, ours)]
    a, b = theirs(**given), ours(**given_to_ours)
    torch.testing.assert_close(b.loss.cpu(), a.loss, **FORWARD)
    torch.testing.assert_close(b.logits.detach().cpu(), a.logits.detach(), **FORWARD)
    a.loss.backward()
    b.loss.backward()
    for (name, p), q in zip(theirs.named_parameters(), ours.parameters()):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            torch.testing.assert_close(q.grad.cpu(), p.grad, **GRADIENTS, msg=lambda m: f"{name}: {m}")
    for optimizer in optimizers:
        optimizer.step()
    for (name, p), q in zip(theirs.named_parameters(), ours.named_parameters()):
        torch.testing.assert_close(q[1].detach().cpu(), p.detach(), rtol=0, atol=2.1 * RATE)


@pytest.mark.parametrize("make", GENERATING, ids=lambda make: make.__name__)
def test_generate_with_a_cache(make):
    theirs, given, ours, given_to_ours = pair(make)
    theirs.eval()
    ours.eval()
    arguments = {"max_new_tokens": 6, "do_sample": False, "use_cache": True}
    wanted = theirs.generate(given["input_ids"], attention_mask=given["attention_mask"], **arguments)
    torch.weft.reset_counters()
    got = ours.generate(given_to_ours["input_ids"], attention_mask=given_to_ours["attention_mask"], **arguments)
    assert got.tolist() == wanted.tolist()
    assert torch.weft.counters()["fallback"] == {}


def test_tied_weights_stay_tied_on_the_device():
    model = gpt2()[0].to("weft")
    assert model.lm_head.weight is model.transformer.wte.weight
