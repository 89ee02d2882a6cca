"""Trains a policy server with the official Tinker SDK; prints one JSON object of what it saw."""
import json
import sys
import warnings

warnings.filterwarnings("ignore")
import tinker
from tinker import types

service = tinker.ServiceClient(base_url=sys.argv[1], api_key="tml-local")
IDS = [1, 5, 9, 13, 17, 21, 25, 29, 33, 37]


def tensor(data, dtype="float32"):
    return types.TensorData(data=data, dtype=dtype, shape=[len(data)])


def datum(ids, **per_token):
    inputs = {"target_tokens": tensor(ids[1:], "int64"), **{name: tensor(list(data)) for name, data in per_token.items()}}
    return types.Datum(model_input=types.ModelInput.from_ints(ids[:-1]), loss_fn_inputs=inputs)


def logprobs(client, ids):
    outputs = client.forward([datum(ids, weights=[1.0] * (len(ids) - 1))], "cross_entropy").result().loss_fn_outputs
    return list(outputs[0]["logprobs"].data)


def adam(rate):
    return types.AdamParams(learning_rate=rate, beta1=0.9, beta2=0.95, eps=1e-8)


capabilities = service.get_server_capabilities()
trainer = service.create_lora_training_client(base_model="policy", rank=8, seed=3)
lesson = [datum(IDS, weights=[1.0] * (len(IDS) - 1))]
losses = []
for _ in range(8):
    result = trainer.forward_backward(lesson, "cross_entropy")
    trainer.optim_step(adam(5e-3)).result()
    losses.append(-sum(result.result().loss_fn_outputs[0]["logprobs"].data))

sampler = trainer.save_weights_and_get_sampling_client()
sampled = sampler.sample(
    prompt=types.ModelInput.from_ints(IDS[:4]),
    num_samples=3,
    sampling_params=types.SamplingParams(max_tokens=6, temperature=1.0, seed=11),
    include_prompt_logprobs=True,
).result()
gaps = []
for sequence in sampled.sequences:
    trained = logprobs(trainer, IDS[:4] + list(sequence.tokens))[3:]
    gaps.append(max(abs(a - b) for a, b in zip(trained, sequence.logprobs)))

rl = {}
behaviour = logprobs(trainer, IDS)
for loss in ("importance_sampling", "ppo", "cispo"):
    steps = [datum(IDS, logprobs=behaviour, advantages=[0.1] * len(behaviour))]
    result = trainer.forward_backward(steps, loss).result()
    rl[loss] = dict(result.metrics)
    trainer.optim_step(adam(1e-4)).result()

saved = trainer.save_state("sdk").result().path
exported = trainer.save_weights_for_sampler("sdk").result().path
before = logprobs(trainer, IDS)
again = service.create_training_client_from_state_with_optimizer(saved)
other = service.create_sampling_client(model_path=exported)
restored = logprobs(again, IDS) == before
prompt = other.compute_logprobs(types.ModelInput.from_ints(IDS)).result()


def refusal(request):
    try:
        request()
    except Exception as error:
        return str(error)
    return "none"


params = types.SamplingParams(max_tokens=1)
head = types.ModelInput.from_ints(IDS[:4])
unsupported = {"topk_prompt_logprobs": lambda: other.sample(head, 1, params, topk_prompt_logprobs=2).result()}
sequence_ids = []
if hasattr(types, "AdamOptimizerConfig"):  # the SDK of today
    sequence_ids = [sequence.sequence_id for sequence in sampled.sequences]
    last = other.sample(head, 1, params, include_prompt_logprobs=True, prompt_logprobs_last_n=2).result()
    assert [value is None for value in last.prompt_logprobs] == [True, True, False, False], last.prompt_logprobs
    dimuon = types.DimuonOptimizerConfig()
    unsupported["optimizer_config"] = lambda: service.create_lora_training_client("policy", optimizer=dimuon).result()
    unsupported["kind"] = lambda: trainer.save_weights_and_get_sampling_client(kind="inflight").result()
    unsupported["loss_fn_config.mode"] = lambda: trainer.forward_backward(steps, "ppo", {"mode": "slow"}).result()
refused = {name: refusal(request) for name, request in unsupported.items()}
if hasattr(service, "close"):
    service.close("success").result()
json.dump(
    {
        "version": tinker.__version__,
        "models": [model.model_name for model in capabilities.supported_models],
        "losses": losses,
        "tokens": [list(sequence.tokens) for sequence in sampled.sequences],
        "promptLogprobs": len(sampled.prompt_logprobs or []),
        "sampleGap": max(gaps),
        "rl": rl,
        "saved": saved,
        "restored": restored,
        "sequenceIds": sequence_ids,
        "refused": refused,
        "scored": max(abs(a - b) for a, b in zip(prompt[1:], before)),
    },
    sys.stdout,
)
